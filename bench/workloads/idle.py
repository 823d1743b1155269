"""A step that sleeps for a millisecond, so any further time in a run is the overhead of tfcompare."""

import time

PARAMS = {"number": ("0",)}


def build(tf, params):
    def step():
        time.sleep(0.001)
        return 1.0

    return step
