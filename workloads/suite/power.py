"""The 100th power of a 10x10 integer matrix: a hundred tiny matmuls, so almost nothing but overhead."""

import numpy

from workloads import compat

PARAMS = {
    "style": ("eager", "function", "jit"),
}

CONTRASTS = {"style": "eager"}

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
        result = tf.eye(SIZE, dtype=tf.int32)
        for _ in range(EXPONENT):
            result = tf.matmul(base, result)
        return result

    if params["style"] == "function":
        power = compat.function(tf, power)
    elif params["style"] == "jit":
        power = compat.function(tf, power, jit=True)
    return lambda: power(matrix)
