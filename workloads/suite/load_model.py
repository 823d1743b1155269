"""Loading a net of five Dense layers from a file, by format and loader.

h5      one HDF5 file, with `tf.keras.models.load_model`
keras   a SavedModel, with `tf.keras.models.load_model`
module  the same SavedModel, with `tf.saved_model.load`
v1      the same SavedModel, with the loader of TensorFlow 1, into a new session

The net is saved while the case is built. It is not compiled.
"""

import os
import tempfile

from workloads import compat

PARAMS = {
    "loader": ("h5", "keras", "module", "v1"),
}

COMPARISONS = {"loader": "h5"}


def refuse(tf, params):
    if params["loader"] == "h5":
        return None
    if compat.version(tf) < (2,):
        return "Before TensorFlow 2.0 `model.save` writes no SavedModel that all loaders can read."
    if compat.keras_is_3(tf):
        return "Keras 3 neither writes nor reads a SavedModel as a model."
    return None


def build(tf, params):
    model = dense(tf.keras)
    compat.fix_weights(model, 1)
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "model.h5" if params["loader"] == "h5" else "model")
    model.save(path)
    step = lambda: LOADERS[params["loader"]](tf, path)
    if params["loader"] == "v1":
        step.no_result = "a graph is loaded, and every version writes another one"
    elif not tf.executing_eagerly():
        step.no_result = "in a graph, reading a weight takes too large a part of the call"
    return step


def dense(keras):
    x = inputs = keras.layers.Input(shape=(16,))
    for _ in range(5):
        x = keras.layers.Dense(16, activation="relu")(x)
    return keras.models.Model(inputs, x)


def last_kernel(weights):
    """Return one kernel, because reading all of them takes some percent of a call."""
    return weights[-2]


def load_with_keras(tf, path):
    kernel = last_kernel(tf.keras.models.load_model(path, compile=False).weights)
    return kernel.numpy() if tf.executing_eagerly() else None


def load_module(tf, path):
    return last_kernel(tf.saved_model.load(path).variables)


def load_into_session(tf, path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.saved_model.loader.load(session, ["serve"], path)


LOADERS = {"h5": load_with_keras, "keras": load_with_keras, "module": load_module, "v1": load_into_session}
