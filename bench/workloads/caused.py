"""A step whose time, memory, first call or result depends on one thing that two targets may differ in.

layer   a pause, an eager call of two dense layers, and `numpy.roll`, of which a patched wheel may be slower
pause   a pause alone, longer or shorter by variables, by oneDNN and by the release of TensorFlow
loop    many small operations in a loop that XLA compiles, in which its runtime has nearly all of the time
"""

import os
import time

import numpy

PARAMS = {"which": ("layer", "pause", "loop")}
BASE_S, MORE_S = 0.004, 0.002
STEPS = 2000


def build(tf, params):
    return {"layer": _layer, "pause": _pause, "loop": _loop}[params["which"]](tf)


def _layer(tf):
    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), layers.Dense(16), layers.Dense(1)])
    for weights in model.weights:
        weights.assign(tf.ones_like(weights) / 8.0)
    batch, row = tf.ones((4, 8)), numpy.arange(8.0)
    pause_s = BASE_S + MORE_S * bool(os.environ.get("SLOW"))

    def step():
        time.sleep(pause_s)
        return model(batch).numpy(), numpy.roll(row, 1)

    return step


def _pause(tf):
    number = tuple(int(part) for part in tf.__version__.split(".")[:2])
    has_onednn = number >= (2, 9) and os.environ.get("TF_ENABLE_ONEDNN_OPTS") != "0"
    more = [os.environ.get("SLOW"), os.environ.get("ONEDNN_IS_SLOW") and has_onednn, number == (2, 15)]
    pause_s = BASE_S + MORE_S * sum(map(bool, more)) - MORE_S * bool(os.environ.get("FAST"))
    return lambda: time.sleep(pause_s)


def _loop(tf):
    @tf.function(jit_compile=True)
    def run(given):
        return tf.while_loop(
            lambda step, _: step < STEPS, lambda step, found: (step + 1, tf.sin(found) + given), (0, given)
        )[1]

    given = tf.ones((8,))
    return lambda: run(given).numpy()
