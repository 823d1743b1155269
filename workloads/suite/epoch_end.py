"""Two epochs of a `fit` on a PyDataset with two workers, in a separate process that may never end.

It returns 1 if the process ended within half a minute, and 0 if it was killed then. Nothing of interest is timed.
"""

import subprocess
import sys

PARAMS = {}

LIMIT_S = 30
PROGRAM = """
import keras
import numpy


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return numpy.ones((4, 8), "float32"), numpy.ones((4, 1), "float32")


model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(Batches(workers=2), epochs=2, verbose=0)
"""


def refuse(keras, params):
    return None if keras.__version__.startswith("3.") else "A PyDataset came with Keras 3."


def build(keras, params):
    def step():
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", PROGRAM],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            code = process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return 0.0
        if code:
            raise RuntimeError(f"a fit in a separate process ended with exit code {code}")
        return 1.0

    return step
