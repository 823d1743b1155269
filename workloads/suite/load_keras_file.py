"""Loading a net of many layers that Keras 3 has saved, in one file or in two.

file     `load_model` of a .keras file
weights  `from_config`, and then `load_weights` of an HDF5 file

The net has 150 Dense layers and is not compiled. It is saved while the case is built.
"""

import os
import tempfile

from workloads import compat

PARAMS = {"loader": ("file", "weights")}

COMPARISONS = {"loader": "weights"}

LAYERS, UNITS = 150, 64


def refuse(tf, params):
    return None if compat.keras_is_3(tf) else "Before Keras 3 this file has another format."


def build(tf, params):
    keras = tf.keras
    x = inputs = keras.layers.Input(shape=(UNITS,))
    for _ in range(LAYERS):
        x = keras.layers.Dense(UNITS, activation="relu")(x)
    model = keras.models.Model(inputs, x)
    compat.fix_weights(model, 1)
    folder = tempfile.mkdtemp()
    path, weights = os.path.join(folder, "model.keras"), os.path.join(folder, "model.weights.h5")
    model.save(path)
    model.save_weights(weights)
    config = model.get_config()

    def load_file():
        return last_kernel(keras.models.load_model(path, compile=False))

    def load_weights():
        loaded = keras.models.Model.from_config(config)
        loaded.load_weights(weights)
        return last_kernel(loaded)

    return load_file if params["loader"] == "file" else load_weights


def last_kernel(model):
    """Return one kernel, because reading all of them takes some percent of a call."""
    return model.weights[-2].numpy()
