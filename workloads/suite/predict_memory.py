"""What many calls of `predict` in one process leave behind in memory.

All the calls of `calls` are made while the case is built; a step is one call more. So both cases make the same number
of timed calls, and their peak memory differs by what the calls before have left. The model is that of the report: it is
compiled, has a hidden layer of 32, and gets one row.
"""

import numpy

from workloads import compat

PARAMS = {
    "calls": ("few", "many"),
}

COMPARISONS = {"calls": "few"}

# The report filled 10 GB in ten minutes, half a megabyte per call. 40 such calls add 20 MB to some 160 MB, in a second
# or two.
CALLS = {"few": 1, "many": 40}


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(10,))
    model = tf.keras.models.Model(inputs, layers.Dense(2)(layers.Dense(32)(inputs)))
    model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    x = numpy.ones((1, 10), "float32")
    for _ in range(CALLS[params["calls"]]):
        model.predict(x, verbose=0)
    return lambda: model.predict(x, verbose=0)
