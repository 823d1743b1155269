"""One step of a `fit` over 200 batches of a tiny net: little but the handling of the input.

dataset  a tf.data dataset of the 200 batches
arrays   two numpy arrays with the same rows, which Keras divides into the same batches without shuffling them

What it costs to begin a `fit` is divided by 200 steps.
"""

import numpy

from workloads import compat

PARAMS = {
    "input": ("dataset", "arrays"),
    "mode": ("graph", "eager"),
}

COMPARISONS = {"input": "dataset", "mode": "eager"}

STEPS, BATCH, FEATURES = 200, 32, 10


def refuse(tf, params):
    return compat.mode_refusal(tf, params["mode"])


def build(tf, params):
    compat.use_mode(tf, params["mode"])
    layers = tf.keras.layers
    inputs = layers.Input(shape=(FEATURES,))
    hidden = layers.Dense(8, activation="relu")(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(hidden))
    model.compile(compat.adam(tf.keras, 1e-3, params["mode"]), loss="binary_crossentropy")
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    x = draw.rand(STEPS * BATCH, FEATURES).astype("float32")
    y = draw.randint(0, 2, (STEPS * BATCH, 1)).astype("float32")
    if params["input"] == "dataset":
        rows, options = (tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH),), {"steps_per_epoch": STEPS}
    else:
        rows, options = (x, y), {"batch_size": BATCH, "shuffle": False}

    def step():
        return model.fit(*rows, verbose=0, **options).history["loss"][-1]

    step.steps = STEPS
    return step
