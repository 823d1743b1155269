"""Making a tf.train.FloatList of two thousand numbers, which come as an array or as an eager tensor.

The report has ten thousand numbers.
"""

import numpy

from workloads import compat

PARAMS = {
    "value": ("array", "tensor"),
}

COMPARISONS = {"value": "array"}

NUMBERS = 2000


def build(tf, params):
    compat.use_mode(tf, "eager")
    value = numpy.random.RandomState(1).rand(NUMBERS)
    if params["value"] == "tensor":
        value = tf.constant(value)
    # Only four numbers are read, because reading all would take a good part of the call.
    return lambda: tf.train.FloatList(value=value).value[:: NUMBERS // 4]
