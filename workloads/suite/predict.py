"""Inference on one fixed batch, before and after compile, in each version's own default mode.

tiny   10 -> Dense 32 -> Dense 2, one row: overhead only
small  two convolutions on 32 images of 32x32x3: overhead and arithmetic in balance
lstm   LSTM 512 over 400 steps, Conv1D, four Dense: arithmetic only, where compile must not matter
dense  Dense 2000, 2000 and 1000 on one row of 1000: 32 MB of weights
none   no layer: the input is the output

`tiny` is the net of TensorFlow issue 33009, `dense` that of the notebook to which the question on predict links, `none`
that of issue 40261.

uncompiled  as the model was made
compiled    compiled with Adam and mean squared error, which predict does not use
flag_off    compiled with experimental_run_tf_function=False, which TensorFlow 2.0 and 2.1 know
reloaded    compiled, saved to a file without the optimizer, and loaded from it

All layers keep their defaults. One of them changed: the gates of an LSTM are hard_sigmoid in TensorFlow 1 and sigmoid
from 2.0 on, so `lstm` computes something else in 1.
"""

import os
import tempfile

import numpy

from workloads import compat

PARAMS = {
    "call": ("predict", "predict_on_batch", "call"),
    "state": ("uncompiled", "compiled", "flag_off", "reloaded"),
    "model": ("tiny", "small", "lstm", "dense", "none"),
}

COMPARISONS = {"state": "uncompiled"}


def refuse(tf, params):
    if params["call"] == "call":
        return compat.direct_call_refusal(tf)
    return None


def build(tf, params):
    shape, dtype, make = MODELS[params["model"]]
    x = numpy.random.RandomState(1).randn(*shape).astype(dtype)
    model = make(tf.keras, shape)
    if params["state"] == "flag_off":
        compile_without_flag(model)
    elif params["state"] != "uncompiled":
        model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    if params["state"] == "reloaded":
        model = reload(tf.keras, model)
    if params["call"] == "call":
        return lambda: model(x)
    if params["call"] == "predict_on_batch":
        return lambda: model.predict_on_batch(x)
    return lambda: model.predict(x, verbose=0)


def compile_without_flag(model):
    # Later versions accept the argument and ignore it.
    if not hasattr(model, "_experimental_run_tf_function"):
        raise compat.Refused("Only the Keras of TensorFlow 2.0 and 2.1 has the flag _experimental_run_tf_function.")
    model.compile("adam", loss="mse", experimental_run_tf_function=False)


def reload(keras, model):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.h5")
        model.save(path, include_optimizer=False)
        return keras.models.load_model(path)


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


def dense(keras, shape):
    layers = keras.layers
    inputs = layers.Input(shape=shape[1:])
    x = layers.Dense(2000, activation="relu")(inputs)
    x = layers.Dense(2000, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(1000, activation="softmax")(x))


def none(keras, shape):
    inputs = keras.layers.Input(shape=shape[1:])
    return keras.models.Model(inputs, inputs)


MODELS = {
    "tiny": ((1, 10), "float32", tiny),
    "small": ((32, 32, 32, 3), "float32", small),
    "lstm": ((32, 400, 16), "float64", lstm),
    "dense": ((1, 1000), "float64", dense),
    "none": ((1, 1, 1), "float64", none),
}
