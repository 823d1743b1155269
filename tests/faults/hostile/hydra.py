"""Starts processes that leave their session and replace each other: one that is killed alone is back at once.

There are at most twenty at a time, and three hundred in all.
"""

import os
import tempfile
import time

PARAMS = {}
PAIRS, MOST = 10, 300


def build(tf, params):
    # A byte for each.
    with tempfile.TemporaryFile() as file:
        started = os.dup(file.fileno())
    for _ in range(PAIRS):
        if os.fork() == 0:
            os.setsid()
            watch(started)
    while os.fstat(started).st_size < PAIRS:
        time.sleep(0.001)
    return lambda: sum(range(1000))


def watch(started):
    while True:
        first = os.getpid()
        if start(started) == 0:
            os.setsid()
            while os.getppid() == first:
                time.sleep(0.001)
        else:
            os.wait()


def start(started):
    os.write(started, b"x")
    while os.fstat(started).st_size > MOST:
        time.sleep(1)
    return os.fork()
