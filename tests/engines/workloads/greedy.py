"""Wants more memory than it may have."""
import numpy as np


def build(tf, params):
    np.ones(10 ** 9)
    return lambda: None
