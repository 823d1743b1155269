"""A `fit` of a net with a Conv2D in a separate process: it returns 0, or how the process ended."""

import subprocess
import sys

from workloads import compat

PARAMS = {}

PROGRAM = """
import keras
import numpy

model = keras.Sequential([
    keras.layers.Input((28, 28, 1)), keras.layers.Conv2D(32, 3, activation="relu"), keras.layers.Flatten(),
    keras.layers.Dense(10),
])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
draw = numpy.random.RandomState(0)
model.fit(draw.rand(256, 28, 28, 1).astype("float32"), draw.randint(0, 10, 256), batch_size=64, verbose=0)
"""


def refuse(tf, params):
    return None if compat.keras_is_3(tf) else "The report is of Keras 3."


def build(tf, params):
    def step():
        return float(subprocess.call(
            [sys.executable, "-B", "-c", PROGRAM],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ))  # fmt: skip

    return step
