"""A loop over a hundred thousand numbers that counts multiples of six, of three and of two: control flow and scalars only.

python    a plain Python loop
function  the same code in a tf.function, where AutoGraph turns it into a loop in the graph
jit       the same, compiled by XLA
"""

from workloads import compat

PARAMS = {
    "style": ("python", "function", "jit"),
}

COMPARISONS = {"style": "python"}

NUMBERS = 100000


def refuse(tf, params):
    return compat.jit_refusal(tf) if params["style"] == "jit" else None


def build(tf, params):
    if params["style"] == "python":
        step = lambda: count(NUMBERS)
        step.no_result = "a Python loop, without TensorFlow"
        return step
    compat.use_mode(tf, "eager")
    counting = compat.function(tf, count, jit=True if params["style"] == "jit" else None)
    numbers = tf.constant(NUMBERS)
    return lambda: counting(numbers)


def count(numbers):
    sixes = threes = twos = 0
    for number in range(numbers):
        if number % 6 == 0:
            sixes += 1
        elif number % 3 == 0:
            threes += 1
        elif number % 2 == 0:
            twos += 1
    return sixes, threes, twos
