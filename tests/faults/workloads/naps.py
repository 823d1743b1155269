"""Calls that take milliseconds: a burst has few of them, and a stream few rows."""
import time

PARAMS = {"which": ("first", "second")}


def build(tf, params):
    return lambda: time.sleep(0.005)
