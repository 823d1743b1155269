"""The 100th power of a 10x10 integer matrix by a tf.while_loop inside a tf.function, compiled by XLA or not.

Unlike in `power`, the loop is part of the graph: TensorFlow's control flow repeats one product a hundred times.
"""

import numpy

from workloads import compat

PARAMS = {
    "style": ("function", "jit"),
}

COMPARISONS = {"style": "function"}

SIZE = 10
EXPONENT = 100


def refuse(tf, params):
    if params["style"] == "jit":
        return compat.integer_jit_refusal(tf)
    return None


def build(tf, params):
    compat.use_mode(tf, "eager")
    values = numpy.random.RandomState(1).randint(-1, 2, (SIZE, SIZE))
    matrix = tf.constant(values, tf.int32)

    def power(base):
        def is_left(count, result):
            return count < EXPONENT

        def multiply(count, result):
            return count + 1, tf.matmul(base, result)

        start = (tf.constant(0), tf.eye(SIZE, dtype=tf.int32))
        return tf.while_loop(is_left, multiply, start)[1]

    power = compat.function(tf, power, jit=True if params["style"] == "jit" else None)
    return lambda: power(matrix)
