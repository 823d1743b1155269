"""Training from a Python generator of numpy batches, through `fit` and through `fit_generator`.

A small convolutional net on 32 images of the size of MNIST's. A call holds many steps, and a new generator is made for
each call.
"""

import numpy

from workloads import compat

PARAMS = {
    "call": ("fit", "fit_generator"),
}

COMPARISONS = {"call": "fit"}

BATCH = 32
STEPS = 20


def refuse(tf, params):
    if params["call"] == "fit_generator" and compat.keras_is_3(tf):
        return "Keras 3 has no fit_generator: its fit takes generators."
    return None


def build(tf, params):
    model = convolutional(tf.keras)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    compat.fix_weights(model, 1)
    train = getattr(model, params["call"])

    def step():
        history = train(batches(), steps_per_epoch=STEPS, verbose=0)
        return history.history["loss"][-1]

    step.steps = STEPS
    return step


def batches():
    draw = numpy.random.RandomState(1)
    x = draw.rand(BATCH, 28, 28, 1).astype("float32")
    y = draw.randint(0, 10, (BATCH, 1))
    while True:
        yield x, y


def convolutional(keras):
    layers = keras.layers
    inputs = layers.Input(shape=(28, 28, 1))
    x = layers.Conv2D(16, 3, activation="relu")(inputs)
    x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(10, activation="softmax")(x))
