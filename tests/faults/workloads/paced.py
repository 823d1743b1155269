"""Takes twice as long from TensorFlow 2.2 on, and long enough for a kill to fall between its calls."""
import time


def build(tf, params):
    wait_s = 0.01 if tf.__version__ < "2.2" else 0.02
    return lambda: time.sleep(wait_s)
