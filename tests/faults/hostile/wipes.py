"""Removes the folder of its worker's results with all that is in it."""

import os
import shutil

PARAMS = {}


def build(tf, params):
    shutil.rmtree(results(), ignore_errors=True)
    return lambda: sum(range(1000))


def results():
    for name in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(os.path.join("/proc/self/fd", name))
        except OSError:
            continue
        if link.partition(" (deleted)")[0].endswith("/stream.arrow"):
            return os.path.dirname(link)
    raise LookupError("its worker has no stream")
