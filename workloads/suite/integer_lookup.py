"""One eager call of an IntegerLookup on eight integers, by how the layer was given its vocabulary of ten thousand."""

import numpy

from workloads import compat

PARAMS = {
    "vocabulary": ("array", "list"),
}

COMPARISONS = {"vocabulary": "array"}

WORDS = 10000


def refuse(tf, params):
    if not hasattr(tf.keras.layers, "IntegerLookup"):
        return "tf.keras.layers has no IntegerLookup before TensorFlow 2.6."
    return None


def build(tf, params):
    compat.use_mode(tf, "eager")
    vocabulary = numpy.arange(WORDS)
    if params["vocabulary"] == "list":
        vocabulary = vocabulary.tolist()
    layer = tf.keras.layers.IntegerLookup(vocabulary=vocabulary)
    integers = numpy.array([[1, 20, 300, 4000], [5, 60, 700, 2 * WORDS]])
    return lambda: layer(integers)
