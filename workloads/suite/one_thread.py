"""The forward pass of a dense ranking net of four layers in a session, in one thread.

The batch of 200 rows and the widths are those that a report's log of oneDNN shows.
"""

import numpy

from workloads import compat

PARAMS = {}

BATCH, FEATURES, WIDTHS = 200, 15680, (512, 128, 64, 31)


def build(tf, params):
    compat.set_threads(tf, 1, 1)
    v1 = tf.compat.v1
    draw = numpy.random.RandomState(1)
    with tf.Graph().as_default():
        rows = v1.placeholder(tf.float32, (None, FEATURES))
        x, before = rows, FEATURES
        for width in WIDTHS:
            weights = (draw.randn(before, width) / before**0.5).astype("float32")
            # This is a variable, because a constant would be packed for oneDNN once, and in the log each call packs it.
            x = v1.nn.bias_add(tf.matmul(x, v1.get_variable(f"w{width}", initializer=weights)), tf.zeros((width,)))
            x = x if width == WIDTHS[-1] else tf.nn.relu(x)
            before = width
        session = v1.Session()
        session.run(v1.global_variables_initializer())
    call = session.make_callable(x, [rows])
    data = draw.randn(BATCH, FEATURES).astype("float32")
    return lambda: call(data)
