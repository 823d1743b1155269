"""One step of gradient descent through a convolution, as a graph: 16 filters of 3x3 on 32 images of 32x32x3.

compiler=none   `tf.function`
compiler=xla    `tf.function(jit_compile=True)`

On a GPU this needs more than a successful import: a cuDNN that can train, and the compiler that XLA calls.
"""

import numpy

from workloads import compat

PARAMS = {
    "compiler": ("none", "xla"),
}

COMPARISONS = {"compiler": "none"}


def refuse(tf, params):
    if not hasattr(tf, "function"):
        return "tf.function does not exist before TensorFlow 1.14."
    return compat.jit_refusal(tf) if params["compiler"] == "xla" else None


def build(tf, params):
    compat.use_mode(tf, "eager")
    draw = numpy.random.RandomState(1)
    images = tf.constant(draw.randn(32, 32, 32, 3).astype("float32"))
    filters = tf.Variable(0.1 * draw.randn(3, 3, 3, 16).astype("float32"))

    def step():
        with tf.GradientTape() as tape:
            found = tf.nn.conv2d(images, filters, strides=[1, 1, 1, 1], padding="SAME")
            loss = tf.reduce_mean(tf.square(tf.nn.relu(found)))
        filters.assign_sub(0.1 * tape.gradient(loss, filters))
        return loss

    return compat.function(tf, step, jit=True if params["compiler"] == "xla" else None)
