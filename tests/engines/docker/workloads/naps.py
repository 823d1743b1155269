"""Calls that take their time and nothing else, so that a run can be met in the middle of one."""

import time

PARAMS = {"which": ("first", "second")}


def build(tf, params):
    return lambda: time.sleep(0.02)
