"""A `fit` of a small autoencoder, compiled for its backend or not."""

import numpy

from workloads import compat

PARAMS = {"jit": ("off", "on")}

COMPARISONS = {"jit": "off"}

BATCH, BATCHES, WIDTH = 64, 16, 128


def refuse(keras, params):
    return None if keras.__version__.startswith("3.") else "Keras 2 compiles with XLA only in some releases."


def build(keras, params):
    x = inputs = keras.layers.Input(shape=(WIDTH,))
    for units in (64, 16, 64):
        x = keras.layers.Dense(units, activation="relu")(x)
    model = keras.models.Model(inputs, keras.layers.Dense(WIDTH)(x))
    model.compile(optimizer="adam", loss="mse", jit_compile=params["jit"] == "on")
    compat.fix_weights(model, 1)
    data = numpy.random.RandomState(0).rand(BATCH * BATCHES, WIDTH).astype("float32")

    def step():
        return model.fit(data, data, batch_size=BATCH, shuffle=False, verbose=0).history["loss"]

    step.steps, step.items = BATCHES, BATCH
    return step
