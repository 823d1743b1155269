"""Training, testing and predicting on one batch whose length is the same in every call, or new in every call.

same      32 rows of one number in each call
new       n rows in the n-th call
sequence  one row in each call, a sequence of n numbers in the n-th

The model is one Dense of one unit, as in the reports; of a sequence it gets the sum. The arithmetic stays nothing. Where
every new length is traced, each trace is kept, so that later calls become a little slower.
"""

import itertools

import numpy

from workloads import compat

PARAMS = {
    "call": ("train_on_batch", "predict_on_batch", "test_on_batch"),
    "length": ("same", "new", "sequence"),
}

COMPARISONS = {"length": "same"}

SAME = 32


def build(tf, params):
    layers = tf.keras.layers
    x = inputs = layers.Input(shape=(None,) if params["length"] == "sequence" else (1,))
    if params["length"] == "sequence":
        x = layers.Lambda(lambda numbers: tf.reduce_sum(numbers, axis=1, keepdims=True), output_shape=(1,))(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    shapes = SHAPES[params["length"]]()
    if params["call"] == "predict_on_batch":
        return lambda: model.predict_on_batch(numpy.ones(next(shapes), "float32"))

    on_batch = getattr(model, params["call"])

    def step():
        shape = next(shapes)
        return on_batch(numpy.ones(shape, "float32"), numpy.ones((shape[0], 1), "float32"))

    return step


SHAPES = {
    "same": lambda: itertools.repeat((SAME, 1)),
    "new": lambda: ((length, 1) for length in itertools.count(1)),
    "sequence": lambda: ((1, length) for length in itertools.count(1)),
}
