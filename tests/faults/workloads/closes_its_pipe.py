"""Closes all descriptors and hangs."""
import os
import time


def build(tf, params):
    os.closerange(3, 256)
    time.sleep(600)
