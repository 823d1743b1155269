"""Training, testing and predicting on one batch whose length is the same in every call, or new in every call.

The model is one Dense of one unit, as in the report. With `length=new` the n-th call has n rows: the arithmetic stays
nothing. Where every new length is traced, each trace is kept, so that later calls become a little slower.
"""

import itertools

import numpy

from workloads import compat

PARAMS = {
    "call": ("train_on_batch", "predict_on_batch", "test_on_batch"),
    "length": ("same", "new"),
}

CONTRASTS = {"length": "same"}

SAME = 32


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(1,))
    model = tf.keras.models.Model(inputs, layers.Dense(1)(inputs))
    model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    lengths = itertools.count(1) if params["length"] == "new" else itertools.repeat(SAME)
    if params["call"] == "predict_on_batch":
        return lambda: model.predict_on_batch(numpy.ones((next(lengths), 1), "float32"))

    on_batch = getattr(model, params["call"])

    def step():
        ones = numpy.ones((next(lengths), 1), "float32")
        return numpy.isfinite(on_batch(ones, ones))

    return step
