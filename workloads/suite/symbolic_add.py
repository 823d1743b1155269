"""One `x + y` of two symbolic Keras inputs, out of a hundred or of three thousand that a fresh process makes.

Nothing is computed: only Python at work on layers and graphs. In 2.13 an addition slows down all that follow it, so
every call has a separate process, and the report's own number of additions is here, though its calls take seconds.
To fork that process and to add for the first time costs some milliseconds a call.
"""

import os

PARAMS = {
    "additions": ("100", "3000"),
}

COMPARISONS = {"additions": "100"}


def build(tf, params):
    additions = int(params["additions"])

    def step():
        child = os.fork()
        if child == 0:
            code = 1
            try:
                add(tf.keras.layers, additions)
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the process that was to add the inputs did not end well")

    step.steps, step.no_result = additions, "a separate process ends well, or the call fails"
    return step


def add(layers, additions):
    x, y = layers.Input(shape=(1,)), layers.Input(shape=(1,))
    for _ in range(additions):
        x + y
