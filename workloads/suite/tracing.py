"""What a tf.function pays for arguments that are new in each call, by what is new about them.

tensor         tensors of other numbers; shape and dtype are the same, and the graph of the first call serves all
python_scalar  Python numbers that were not there before
shape          tensors of a length that was not there before
dtype          tensors whose dtypes were not there before in this combination
list           lists of Python numbers that were not there before
same_list      a list of the same Python numbers in each call

The function has four arguments for the sake of `dtype`: so few dtypes exist that one argument alone would soon find
all its graphs there. Each graph is kept, so memory grows with the calls; the number of traces is recorded with them.
"""

import itertools

import numpy

from workloads import compat

PARAMS = {
    "argument": ("tensor", "python_scalar", "shape", "dtype", "list", "same_list"),
}

COMPARISONS = {"argument": "tensor"}

ARGUMENTS = 4
LENGTH = 8

# The oldest version multiplies all of them, and squares them where its optimizer turns products into squares. There are
# 2401 combinations of four, more than a replicate ever calls.
DTYPES = ("float16", "float32", "float64", "int32", "int64", "complex64", "complex128")
SAME = ("float32",) * ARGUMENTS


def build(tf, params):
    compat.use_mode(tf, "eager")
    squares = compat.function(tf, lambda *numbers: [tf.multiply(number, number) for number in numbers])
    arguments = NEW[params["argument"]](tf)
    return lambda: squares(*next(arguments))


def tensors(tf):
    for number in itertools.count():
        yield made_of(tf, number, LENGTH, SAME)


def python_scalars(tf):
    for number in itertools.count():
        yield (number,) * ARGUMENTS


def shapes(tf):
    for number in itertools.count():
        yield made_of(tf, number, number + 1, SAME)


def dtypes(tf):
    for number, combination in enumerate(itertools.product(DTYPES, repeat=ARGUMENTS)):
        yield made_of(tf, number, LENGTH, combination)


def lists(tf):
    for number in itertools.count():
        yield ([number] * LENGTH,) * ARGUMENTS


def same_lists(tf):
    for _ in itertools.count():
        yield ([1] * LENGTH,) * ARGUMENTS


def made_of(tf, number, length, dtypes):
    return [tf.constant(numpy.full(length, number % 10, dtype)) for dtype in dtypes]


NEW = {
    "tensor": tensors,
    "python_scalar": python_scalars,
    "shape": shapes,
    "dtype": dtypes,
    "list": lists,
    "same_list": same_lists,
}
