"""The calls of two small nets, by Keras alone: on TensorFlow, JAX and PyTorch."""

import numpy

from workloads import compat

PARAMS = {"net": ("dense", "conv"), "call": ("fit", "train_on_batch", "predict")}
BATCH, BATCHES = 16, 4


def build(keras, params):
    shape = (16, 16, 3) if params["net"] == "conv" else (16,)
    model = keras.Sequential()
    if params["net"] == "conv":
        model.add(keras.layers.Conv2D(8, 3, activation="relu"))
        model.add(keras.layers.Flatten())
    model.add(keras.layers.Dense(32, activation="relu"))
    model.add(keras.layers.Dense(1))
    model.build((None,) + shape)
    model.compile(optimizer="sgd", loss="mse")
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(0)
    x = draw.uniform(size=(BATCH * BATCHES,) + shape).astype("float32")
    y = draw.uniform(size=(BATCH * BATCHES, 1)).astype("float32")
    if params["call"] == "train_on_batch":
        return lambda: model.train_on_batch(x[:BATCH], y[:BATCH])
    if params["call"] == "predict":
        return lambda: model.predict(x, batch_size=BATCH, verbose=0)

    def fit():
        return model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0).history["loss"]

    fit.steps, fit.items = BATCHES, BATCH
    return fit
