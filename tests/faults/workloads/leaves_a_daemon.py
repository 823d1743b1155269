"""Leaves a process behind that has left its session."""
import os
import time


def build(tf, params):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            announce = os.environ.get("TF_CPP_ANNOUNCE")
            if announce:
                with open(announce, "a") as file:
                    file.write(f"{os.getpid()}\n")
            time.sleep(600)
        os._exit(0)
    os.wait()
    return lambda: time.sleep(0.001)
