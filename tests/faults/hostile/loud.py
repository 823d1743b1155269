"""Prints a hundred megabytes, and then what it is."""

import os

PARAMS = {}


def build(tf, params):
    for _ in range(100):
        os.write(1, b"x" * 10**6)
    print("\nloud to the end")
    return lambda: sum(range(1000))
