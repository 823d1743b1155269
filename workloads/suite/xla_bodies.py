"""Small computations that XLA compiles for a CPU, modelled on reports about its newer runtime.

- `loop`: a while loop over 20 000 numbers, each of which is compared with the largest so far
- `matrices64`: a while loop that multiplies a 3x3 matrix of float64 a thousand times; `matrices32`: the same in float32
- `differences`: the sum of the squared differences of neighbours in a cube of 128 numbers a side
- `fft`: the Fourier transform of a cube of 64 complex numbers a side
- `leaves`: the gradient through 100 steps of a loop whose state is 32 scalars, its leaves

The reports use JAX, whose programs the same XLA compiles. The sizes are smaller than theirs, so that a call takes
milliseconds.
"""

import numpy

from workloads import compat

PARAMS = {
    "body": ("loop", "matrices64", "matrices32", "differences", "fft", "leaves"),
}

NUMBERS, PRODUCTS, SIDE, FFT_SIDE, SCALARS, STEPS = 20000, 1000, 128, 64, 32, 100


def refuse(tf, params):
    return compat.jit_refusal(tf)


def build(tf, params):
    compat.use_mode(tf, "eager")
    body, argument = BODIES[params["body"]](tf)
    compiled = compat.function(tf, body, jit=True)
    return lambda: compiled(argument)


def make_loop(tf):
    numbers = tf.constant(numpy.arange(NUMBERS), tf.int32)

    def find_largest(values):
        def is_left(largest, place):
            return largest < NUMBERS - 1

        def compare(largest, place):
            return tf.maximum(largest, values[place]), place + 1

        return tf.while_loop(is_left, compare, (tf.constant(0), tf.constant(0)))[1]

    return find_largest, numbers


def make_matrices(tf, kind):
    turn = numpy.linalg.qr(numpy.random.RandomState(1).normal(size=(3, 3)))[0].astype(kind)

    def multiply_often(matrix):
        def is_left(count, result):
            return count < PRODUCTS

        def multiply(count, result):
            return count + 1, tf.matmul(matrix, result)

        return tf.while_loop(is_left, multiply, (tf.constant(0), tf.eye(3, dtype=matrix.dtype)))[1]

    return multiply_often, tf.constant(turn)


def make_differences(tf):
    cube = tf.constant(numpy.random.RandomState(1).normal(size=(SIDE,) * 3).astype("float32"))

    def add_squares(values):
        pairs = ((values[1:], values[:-1]), (values[:, 1:], values[:, :-1]), (values[:, :, 1:], values[:, :, :-1]))
        return tf.add_n([tf.reduce_sum(tf.square(later - earlier)) for later, earlier in pairs])

    return add_squares, cube


def make_fft(tf):
    cube = tf.constant(numpy.full((FFT_SIDE,) * 3, 1.1 + 1.1j, "complex64"))
    return tf.signal.fft3d, cube


def make_leaves(tf):
    def differentiate(start):
        with tf.GradientTape() as tape:
            tape.watch(start)
            scalars = tuple(tf.unstack(start))

            def is_left(count, *values):
                return count < STEPS

            def turn(count, *values):
                return (count + 1,) + tuple(0.99 * one + 0.01 * tf.sin(other) for one, other in zip(values, rotated(values)))

            results = tf.while_loop(is_left, turn, (tf.constant(0),) + scalars, maximum_iterations=STEPS)[1:]
            total = tf.add_n(list(results))
        return tape.gradient(total, start)

    return differentiate, tf.constant(numpy.linspace(0.1, 1.0, SCALARS).astype("float32"))


def rotated(values):
    return values[1:] + values[:1]


BODIES = {
    "loop": make_loop,
    "matrices64": lambda tf: make_matrices(tf, "float64"),
    "matrices32": lambda tf: make_matrices(tf, "float32"),
    "differences": make_differences,
    "fft": make_fft,
    "leaves": make_leaves,
}
