"""One epoch of a `fit` on ten thousand rows that have a weight each, or none.

The net and the rows are those of the report: ten numbers in a row, four Dense of 64 with Dropout, binary cross-entropy
and the accuracy. A call is one `fit`, so the start of `fit` is a part of it.
"""

import numpy

from workloads import compat

PARAMS = {
    "weights": ("without", "with"),
}

COMPARISONS = {"weights": "without"}

ROWS, WIDTH = 10000, 10


def build(tf, params):
    layers = tf.keras.layers
    x = inputs = layers.Input(shape=(WIDTH,))
    for _ in range(4):
        x = layers.Dropout(compat.KEEP_ALL)(layers.Dense(64, activation="relu")(x))
    model = tf.keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", loss="binary_crossentropy", metrics=["accuracy"])
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    x, y = draw.rand(ROWS, WIDTH), draw.rand(ROWS, 1)
    weights = draw.rand(ROWS, 1) if params["weights"] == "with" else None

    def step():
        return model.fit(x, y, sample_weight=weights, epochs=1, shuffle=False, verbose=0).history["loss"][-1]

    return step
