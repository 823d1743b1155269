"""One eager call of a convolution with 16 filters, or of a depthwise one, on two images of 64x64x3.

Each has a window of 3x3 and pads its input. The depthwise one needs about a sixteenth of the multiplications.
"""

import numpy

from workloads import compat

PARAMS = {
    "layer": ("Conv2D", "DepthwiseConv2D"),
}

COMPARISONS = {"layer": "Conv2D"}


def build(tf, params):
    compat.use_mode(tf, "eager")
    layers = tf.keras.layers
    images = tf.constant(numpy.random.RandomState(1).randn(2, 64, 64, 3).astype("float32"))
    if params["layer"] == "Conv2D":
        layer = layers.Conv2D(16, 3, padding="same")
    else:
        layer = layers.DepthwiseConv2D(3, padding="same")
    return lambda: layer(images)
