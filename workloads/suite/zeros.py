"""A thousand calls of `tf.zeros` in eager mode: what a small operation leaves behind in memory."""

from workloads import compat

PARAMS = {}

CALLS = 1000


def refuse(tf, params):
    return compat.mode_refusal(tf, "eager")


def build(tf, params):
    compat.use_mode(tf, "eager")

    def step():
        for _ in range(CALLS):
            zeros = tf.zeros((1,))
        return zeros

    step.steps = CALLS
    return step
