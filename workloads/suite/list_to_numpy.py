"""`numpy.array` of a list of ten eager tensors of 50x50, or of the arrays that `.numpy()` gives of them.

That is the largest list of the report. What numpy makes of a list of foreign objects differs between its versions
too, and each TensorFlow has its own.
"""

import numpy

from workloads import compat

PARAMS = {
    "elements": ("arrays", "tensors"),
}

COMPARISONS = {"elements": "arrays"}

TENSORS, SIDE = 10, 50


def build(tf, params):
    compat.use_mode(tf, "eager")
    values = numpy.random.RandomState(1).rand(TENSORS, SIDE, SIDE).astype("float32")
    tensors = [tf.constant(matrix) for matrix in values]
    if params["elements"] == "arrays":
        return lambda: numpy.array([tensor.numpy() for tensor in tensors])
    return lambda: numpy.array(tensors)
