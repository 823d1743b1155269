"""The gradient of a tf.scan over fifty steps by a variable that each step uses, inside a tf.function.

tape  plain or persistent: the kind of GradientTape

A step is one of the forward recursion of a chain of ten tags, for a batch of eight.
"""

import numpy

from workloads import compat

PARAMS = {
    "tape": ("plain", "persistent"),
}

COMPARISONS = {"tape": "plain"}

STEPS, BATCH, TAGS = 50, 8, 10


def build(tf, params):
    compat.use_mode(tf, "eager")
    draw = numpy.random.RandomState(1)
    scores = tf.constant(draw.rand(STEPS, BATCH, TAGS).astype("float32"))
    transitions = tf.Variable(draw.rand(TAGS, TAGS).astype("float32"))

    def advance(state, score):
        return score + tf.reduce_logsumexp(tf.expand_dims(state, 2) + transitions, axis=1)

    def gradient():
        with tf.GradientTape(persistent=params["tape"] == "persistent") as tape:
            loss = tf.reduce_sum(tf.scan(advance, scores)[-1])
        return tape.gradient(loss, transitions)

    return compat.function(tf, gradient)
