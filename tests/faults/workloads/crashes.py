"""Takes its whole process down, as a broken native kernel does."""
import os
import signal


def build(tf, params):
    return lambda: os.kill(os.getpid(), signal.SIGSEGV)
