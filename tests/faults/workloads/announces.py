"""Writes the pid of its worker to the file that TF_CPP_ANNOUNCE names, then takes its time."""
import os
import time


def build(tf, params):
    def step():
        if tf.__version__.startswith("2."):
            with open(os.environ["TF_CPP_ANNOUNCE"], "a") as announce:
                announce.write(f"{os.getppid()}\n")
        time.sleep(0.05)

    return step
