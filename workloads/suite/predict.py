"""Inference on one fixed batch, before and after compile, in each version's own default mode.

tiny   10 -> Dense 32 -> Dense 2, one row: overhead only
small  two convolutions on 32 images of 32x32x3: overhead and arithmetic in balance
lstm   LSTM 512 over 400 steps, Conv1D, four Dense: arithmetic only, where compile must not matter

All layers keep their defaults. One of them changed: the gates of an LSTM are hard_sigmoid in TensorFlow 1 and sigmoid
from 2.0 on, so `lstm` computes something else in 1.
"""

import numpy

from workloads import compat

PARAMS = {
    "call": ("predict", "predict_on_batch", "call"),
    "state": ("uncompiled", "compiled"),
    "model": ("tiny", "small", "lstm"),
}

CONTRASTS = {"state": "uncompiled"}


def refuse(tf, params):
    if params["call"] == "call":
        return compat.direct_call_refusal(tf)
    return None


def build(tf, params):
    shape, dtype, make = MODELS[params["model"]]
    x = numpy.random.RandomState(1).randn(*shape).astype(dtype)
    model = make(tf.keras, shape)
    if params["state"] == "compiled":
        model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    if params["call"] == "call":
        return lambda: model(x)
    if params["call"] == "predict_on_batch":
        return lambda: model.predict_on_batch(x)
    return lambda: model.predict(x, verbose=0)


def tiny(keras, shape):
    inputs = keras.layers.Input(shape=shape[1:])
    x = keras.layers.Dense(32)(inputs)
    return keras.models.Model(inputs, keras.layers.Dense(2)(x))


def small(keras, shape):
    layers = keras.layers
    inputs = layers.Input(shape=shape[1:])
    x = layers.Conv2D(16, 3, activation="relu")(inputs)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.models.Model(inputs, layers.Dense(10, activation="softmax")(x))


def lstm(keras, shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=shape)
    x = layers.LSTM(512, activation="relu", return_sequences=True)(inputs)
    x = layers.Conv1D(128, 400, padding="same")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dropout(0.5)(x)
    x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


MODELS = {
    "tiny": ((1, 10), "float32", tiny),
    "small": ((32, 32, 32, 3), "float32", small),
    "lstm": ((32, 400, 16), "float64", lstm),
}
