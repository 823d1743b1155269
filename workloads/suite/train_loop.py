"""One training step of three convolutional nets, through every Keras training loop.

The models, batches and data are those of the study that asked why TensorFlow 2 is slower than 1: batches of 32
with 30 channels of normal float64 input, 0/1 integer targets, Adam, no recurrent layers, no sparse data.

With numpy input a step is one call: `train_on_batch`, or `fit` on the one batch. With a dataset it is one step of
a `fit` over many.

Two things that `mode` brings with it. From 2.11 on graph mode has the legacy Adam, because the new one cannot run
there. Standalone keras 2.3 on TensorFlow 2 puts its models into a separate graph even in eager mode.

The large model is all linear between its layers and diverges after some tens of steps.
"""

import numpy

from workloads import compat

PARAMS = {
    "loop": ("train_on_batch", "fit"),
    "api": ("tf.keras", "keras"),
    "mode": ("graph", "eager"),
    "input": ("numpy", "dataset"),
    "model": ("small", "medium", "large"),
    "data": ("small", "medium", "large"),
}

COMPARISONS = {"mode": "eager"}

EXCLUDE = (
    {"model": "large", "data": "small"},
    {"loop": "train_on_batch", "input": "dataset"},
)

BATCH_SHAPES = {
    "small": (32, 140, 30),
    "medium": (32, 1400, 30),
    "large": (32, 14000, 30),
}

# The set-up of `fit` is a small part of this many steps, as in the study, and a call still ends in seconds.
STEPS = {"small": 50, "medium": 10, "large": 4}

# TensorFlow 1 stores the arrays of a dataset inside the graph, where four batches of the large data are 430 MB.
DISTINCT_BATCHES = 2


def refuse(tf, params):
    reason = compat.keras_refusal(tf, params["api"], params["mode"])
    if reason is None and params["input"] == "dataset":
        reason = compat.dataset_refusal(tf, params["api"])
    return reason


def build(tf, params):
    compat.use_mode(tf, params["mode"])
    keras = compat.keras(tf, params["api"])
    shape = BATCH_SHAPES[params["data"]]
    model = MODELS[params["model"]](keras, shape)
    model.compile(compat.adam(keras, 1e-4, params["mode"]), loss="binary_crossentropy")
    compat.fix_weights(model, 1)
    if params["input"] == "dataset":
        return fit_dataset(tf, model, shape, STEPS[params["model"]])
    x, y = batches(1, shape)
    return LOOPS[params["loop"]](model, x[0], y[0])


def batches(count, shape):
    draw = numpy.random.RandomState(1)
    return draw.randn(count, *shape), draw.randint(0, 2, (count, shape[0], 1))


def train_on_batch(model, x, y):
    return lambda: model.train_on_batch(x, y)


def fit(model, x, y):
    return lambda: model.fit(x, y, verbose=0).history["loss"][-1]


def fit_dataset(tf, model, shape, steps):
    dataset = tf.data.Dataset.from_tensor_slices(batches(DISTINCT_BATCHES, shape)).repeat(steps // DISTINCT_BATCHES)

    def step():
        return model.fit(dataset, steps_per_epoch=steps, verbose=0).history["loss"][-1]

    step.steps = steps
    return step


def small(keras, shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=shape)
    x = layers.Conv1D(128, 40, strides=4, padding="same")(inputs)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dropout(compat.KEEP_ALL)(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


def medium(keras, shape):
    layers = keras.layers
    x = inputs = layers.Input(batch_shape=shape)
    for filters in (64, 128, 256, 256, 128, 64):
        x = layers.Conv1D(filters, 20, padding="valid")(x)
    return keras.models.Model(inputs, head(layers, x))


def large(keras, shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=shape)
    x = layers.Conv1D(64, 400, strides=4, padding="valid")(inputs)
    x = layers.Conv1D(128, 200, padding="valid")(x)
    for _ in range(40):
        x = layers.Conv1D(256, 12, padding="same")(x)
    x = layers.Conv1D(512, 20, strides=2, padding="valid")(x)
    x = layers.Conv1D(1028, 10, strides=2, padding="valid")(x)
    x = layers.Conv1D(256, 1, padding="valid")(x)
    return keras.models.Model(inputs, head(layers, x))


def head(layers, x):
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dropout(compat.KEEP_ALL)(x)
    x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(x)
    return layers.Dense(1, activation="sigmoid")(x)


LOOPS = {"train_on_batch": train_on_batch, "fit": fit}
MODELS = {"small": small, "medium": medium, "large": large}
