"""Is killed while a process that it has started holds its pipe open."""
import os
import signal
import time


def build(tf, params):
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
