"""One training step of a large Embedding, with an optimizer as it is now or with its legacy implementation.

A batch touches 1280 rows of 200 000 at most; an optimizer that takes the gradient for a dense one touches them all.
"""

import numpy

from workloads import compat

PARAMS = {
    "optimizer": ("SGD", "Adagrad", "Adam", "RMSprop", "Nadam"),
    "implementation": ("legacy", "current"),
}

COMPARISONS = {"implementation": "legacy"}

ROWS, WIDTH = 200000, 64
BATCH, WORDS = 64, 20


def refuse(tf, params):
    if params["implementation"] == "legacy":
        return compat.legacy_optimizer_refusal(tf, params["optimizer"])
    return None


def build(tf, params):
    layers, optimizers = tf.keras.layers, tf.keras.optimizers
    if params["implementation"] == "legacy":
        optimizers = optimizers.legacy
    inputs = layers.Input(shape=(WORDS,), dtype="int32")
    x = layers.Embedding(ROWS, WIDTH)(inputs)
    x = layers.GlobalAveragePooling1D()(x)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile(getattr(optimizers, params["optimizer"])(), loss="mse")
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    words = draw.randint(0, ROWS, (BATCH, WORDS)).astype("int32")
    y = draw.rand(BATCH, 1).astype("float32")
    return lambda: model.train_on_batch(words, y)
