"""A body, then a spin for a known share of the body's CPU time: the true ratio to the body alone is exact.

A share of its wall time would be more on a busy core, where a body also waits, and the spin would take all of it as CPU
time. The share is in the file `slowdown.txt` next to this one, so that the very same case is slower in one arm.
"""

import os
import time

import numpy as np

PARAMS = {"body": ("matmul", "train")}


def build(tf, params):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "slowdown.txt")) as given:
        slowdown = float(given.read())
    body = {"matmul": _matmul, "train": _train}[params["body"]](tf)

    def step():
        begun = time.process_time()
        body()
        until = time.thread_time() + (time.process_time() - begun) * slowdown
        while time.thread_time() < until:
            pass

    return step


def _matmul(tf):
    # Whole numbers: numpy multiplies them without BLAS, hence without its threads.
    left = np.random.RandomState(1).randint(0, 9, (150, 150))
    return lambda: left.dot(left)


def _train(tf):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(30, activation="relu", input_shape=(30,)), layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    inputs, targets = np.random.normal(size=(32, 30)), np.random.normal(size=(32, 1))
    return lambda: model.train_on_batch(inputs, targets)
