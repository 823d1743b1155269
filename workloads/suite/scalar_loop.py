"""A loop of a thousand steps that counts multiples of six, of three and of two: control flow and scalars, nothing else.

python    a plain Python loop
function  a while_loop with nested conditions inside a tf.function, which is what AutoGraph makes of such a loop
jit       the same, compiled by XLA
"""

from workloads import compat

PARAMS = {
    "style": ("python", "function", "jit"),
}

CONTRASTS = {"style": "python"}

NUMBERS = 1000


def refuse(tf, params):
    return compat.jit_refusal(tf) if params["style"] == "jit" else None


def build(tf, params):
    if params["style"] == "python":
        return count
    compat.use_mode(tf, "eager")
    return compat.function(tf, lambda: count_in_graph(tf), jit=True if params["style"] == "jit" else None)


def count():
    sixes = threes = twos = 0
    for number in range(NUMBERS):
        if number % 6 == 0:
            sixes += 1
        elif number % 3 == 0:
            threes += 1
        elif number % 2 == 0:
            twos += 1
    return sixes, threes, twos


def count_in_graph(tf):
    def divisible(number, divisor):
        return tf.equal(number % divisor, 0)

    def count_one(number, sixes, threes, twos):
        def count_two():
            return tf.cond(divisible(number, 2), lambda: (sixes, threes, twos + 1), lambda: (sixes, threes, twos))

        def count_three():
            return tf.cond(divisible(number, 3), lambda: (sixes, threes + 1, twos), count_two)

        counts = tf.cond(divisible(number, 6), lambda: (sixes + 1, threes, twos), count_three)
        return [number + 1] + list(counts)

    zeros = [tf.constant(0) for _ in range(4)]
    return tf.while_loop(lambda number, *counts: number < NUMBERS, count_one, zeros)[1:]
