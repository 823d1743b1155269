"""`numpy.array` of a list of a hundred small eager tensors, or of the arrays that `.numpy()` gives of them.

A tensor is a vector of ten numbers. What numpy makes of a list of foreign objects differs between its versions
too, and each TensorFlow has its own.
"""

import numpy

from workloads import compat

PARAMS = {
    "elements": ("arrays", "tensors"),
}

CONTRASTS = {"elements": "arrays"}

TENSORS, LENGTH = 100, 10


def build(tf, params):
    compat.use_mode(tf, "eager")
    values = numpy.random.RandomState(1).rand(TENSORS, LENGTH).astype("float32")
    tensors = [tf.constant(row) for row in values]
    if params["elements"] == "arrays":
        return lambda: numpy.array([tensor.numpy() for tensor in tensors])
    return lambda: numpy.array(tensors)
