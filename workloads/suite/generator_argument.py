"""A tf.function that draws one number from a random generator: the same generator in each call, or a new one.

TensorFlow's guide to random numbers passes generators to a function in this way.
"""

import itertools

from workloads import compat

PARAMS = {
    "generator": ("same", "new"),
}

COMPARISONS = {"generator": "same"}


def refuse(tf, params):
    if not hasattr(tf.random, "Generator"):
        return "This TensorFlow has no tf.random.Generator."
    return None


def build(tf, params):
    compat.use_mode(tf, "eager")
    draw = compat.function(tf, lambda generator: generator.normal([]))
    if params["generator"] == "same":
        generators = itertools.repeat(tf.random.Generator.from_seed(1))
    else:
        generators = map(tf.random.Generator.from_seed, itertools.count(1))
    return lambda: draw(next(generators))
