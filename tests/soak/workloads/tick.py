"""Takes a few milliseconds per call, and has enough cases for a kill to fall between any two steps of a run."""
import time

PARAMS = {"ms": ("1", "2", "5")}


def build(tf, params):
    wait_s = int(params["ms"]) / 1000.0
    return lambda: time.sleep(wait_s)
