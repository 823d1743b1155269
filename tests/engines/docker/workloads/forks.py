"""Starts processes that start others: more of them than its container may have, and at most 2048."""

import os
import time


def build(tf, params):
    def step():
        for _ in range(256):
            if os.fork() == 0:
                multiply()

    return step


def multiply():
    try:
        for _ in range(3):
            os.fork()
    except OSError:
        pass
    time.sleep(120)
    os._exit(0)
