"""A step that calls a function of Python and runs an operation of TensorFlow many times, with MORE=1 5 % more often."""

import os

TIMES = 105 if os.environ.get("MORE") else 100


def build(tf, params):
    one = tf.ones((2, 2))

    def call():
        return one + one

    def step():
        for _ in range(TIMES):
            found = call()
        return found

    return step
