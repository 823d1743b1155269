"""The 100th power of a 10x10 integer matrix: a hundred tiny matmuls, so almost nothing but overhead.

eager        each product is an operation that Python starts
function     one tf.function with all hundred products
jit          the same, compiled by XLA
pieces       a tf.function with a single product, called a hundred times
run_eagerly  as `function`, after tf.config.run_functions_eagerly(True)
"""

import numpy

from workloads import compat

PARAMS = {
    "style": ("eager", "function", "jit", "pieces", "run_eagerly"),
}

COMPARISONS = {"style": "eager"}

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

    if params["style"] == "pieces":
        power = power_in_pieces(tf)
    elif params["style"] == "jit":
        power = compat.function(tf, power, jit=True)
    elif params["style"] != "eager":
        power = compat.function(tf, power)
    if params["style"] == "run_eagerly":
        compat.run_functions_eagerly(tf, True)
    return lambda: power(matrix)


def power_in_pieces(tf):
    def product(left, right):
        return tf.matmul(left, right)

    multiply = compat.function(tf, product)

    def power(base):
        result = tf.eye(SIZE, dtype=tf.int32)
        for _ in range(EXPONENT):
            result = multiply(base, result)
        return result

    return power
