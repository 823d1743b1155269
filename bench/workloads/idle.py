"""A step that sleeps for a millisecond: all that a run of it takes beyond that is tfcompare's own."""
import time

PARAMS = {"number": ("0",)}


def build(tf, params):
    def step():
        time.sleep(0.001)
        return 1.0

    return step
