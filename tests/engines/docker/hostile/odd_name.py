"""Raises with the name of a file that is no UTF-8 in its message."""

import os

PARAMS = {}


def build(tf, params):
    raise ValueError("cannot read " + os.fsdecode(b"caf\xe9.npy"))
