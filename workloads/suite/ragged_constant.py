"""Making a tensor of an array of a hundred thousand integers, with `tf.constant` or with `tf.ragged.constant`.

The array is flat, so the result has no ragged dimension in either case. The report's array has ten million integers.
"""

import numpy

from workloads import compat

PARAMS = {
    "constant": ("dense", "ragged"),
}

COMPARISONS = {"constant": "dense"}

INTEGERS = 100000


def build(tf, params):
    compat.use_mode(tf, "eager")
    values = numpy.random.RandomState(1).randint(10, size=INTEGERS)
    constant = tf.ragged.constant if params["constant"] == "ragged" else tf.constant
    return lambda: constant(values)
