"""What TensorFlow's graph optimizer can save: code that it can improve, and as much code that it cannot.

folding   a chain of products of constants, which it computes once; or of arguments, whose values it does not know
sharing   twenty times the same product, of which it keeps one; or twenty different products
parallel  two chains of inversions, which can run at the same time; or one chain of as many inversions

With `possible=yes` the optimizer or the executor can help. Both values run inside a tf.function, with equally many
products or inversions as written.
"""

import numpy

from workloads import compat

PARAMS = {
    "optimization": ("folding", "sharing", "parallel"),
    "possible": ("no", "yes"),
}

COMPARISONS = {"possible": "no"}

# A folded constant must stay below 100 KB.
SIZE = 100
PRODUCTS = 20
INVERSIONS = 8


def build(tf, params):
    compat.use_mode(tf, "eager")
    return OPTIMIZATIONS[params["optimization"]](tf, params["possible"] == "yes")


def folding(tf, possible):
    left, right = matrices(2)

    def chain(matrix, factor):
        for _ in range(PRODUCTS):
            matrix = tf.matmul(matrix, factor)
        return matrix

    def of_constants(x):
        return x + chain(tf.constant(left), tf.constant(right))

    def of_arguments(x, matrix, factor):
        return x + chain(matrix, factor)

    function = compat.function(tf, of_constants if possible else of_arguments)
    arguments = [tf.constant(matrix) for matrix in ((left,) if possible else (left, left, right))]
    return lambda: function(*arguments)


def sharing(tf, possible):
    first, *factors = [tf.constant(matrix) for matrix in matrices(PRODUCTS + 1)]

    def same(matrix, factor):
        return tf.add_n([tf.matmul(matrix, factor) for _ in range(PRODUCTS)])

    def different(matrix, *factors):
        return tf.add_n([tf.matmul(matrix, factor) for factor in factors])

    if possible:
        factors = factors[:1]
    function = compat.function(tf, same if possible else different)
    return lambda: function(first, *factors)


def parallel(tf, possible):
    # An inversion runs in one thread. On a GPU there would be a single stream for both chains.
    with tf.device("CPU:0"):
        first, second = [tf.constant(matrix + 2 * numpy.eye(SIZE, dtype="float32")) for matrix in matrices(2)]

    def invert(matrix, times):
        for _ in range(times):
            matrix = tf.linalg.inv(matrix)
        return matrix

    def side_by_side(left, right):
        with tf.device("CPU:0"):
            return invert(left, INVERSIONS // 2) + invert(right, INVERSIONS // 2)

    def one_after_the_other(left, right):
        with tf.device("CPU:0"):
            return invert(left, INVERSIONS) + right

    function = compat.function(tf, side_by_side if possible else one_after_the_other)
    return lambda: function(first, second)


def matrices(count):
    """Return matrices whose products stay small."""
    draw = numpy.random.RandomState(1)
    return [(draw.randn(SIZE, SIZE) / SIZE**0.5).astype("float32") for _ in range(count)]


OPTIMIZATIONS = {"folding": folding, "sharing": sharing, "parallel": parallel}
