"""Memory that many epochs of `fit_generator` leave behind, with a weight for each class or with none.

All epochs of `epochs` are trained while the case is built; a step is one epoch more. So all cases make the same number
of timed calls, and the peak memory of `few` and `many` differs by what the epochs before have left. A small classifier
gets twenty batches of 32 rows in an epoch.
"""

import numpy

from workloads import compat

PARAMS = {
    "weights": ("without", "with"),
    "epochs": ("few", "many"),
}

COMPARISONS = {"weights": "without", "epochs": "few"}

BATCH, STEPS = 32, 20
EPOCHS = {"few": 1, "many": 25}


def refuse(tf, params):
    if compat.keras_is_3(tf):
        return "Keras 3 has no fit_generator: its fit takes generators."
    return None


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(10,))
    x = layers.Dense(64, activation="relu")(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", loss="binary_crossentropy")
    compat.fix_weights(model, 1)
    weights = {0: 0.5, 1: 2.0} if params["weights"] == "with" else None

    def train(epochs):
        history = model.fit_generator(batches(), steps_per_epoch=STEPS, epochs=epochs, class_weight=weights, verbose=0)
        return history.history["loss"][-1]

    train(EPOCHS[params["epochs"]])
    return lambda: train(1)


def batches():
    draw = numpy.random.RandomState(1)
    x = draw.rand(BATCH, 10).astype("float32")
    y = draw.randint(0, 2, (BATCH, 1)).astype("float32")
    while True:
        yield x, y
