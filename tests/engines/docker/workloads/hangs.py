"""Hangs in its third call in TensorFlow 2, and says so by a file in the scratch folder of its container."""

import time


def build(tf, params):
    calls = []

    def step():
        calls.append(None)
        if len(calls) > 2 and tf.__version__.startswith("2."):
            open("/tmp/hangs", "w").close()
            time.sleep(600)
        time.sleep(0.005)

    return step
