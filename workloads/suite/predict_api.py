"""`predict` on one row through tf.keras and through standalone keras, whose calls are otherwise the same.

The model is compiled. Standalone keras 2.3 on TensorFlow 2 puts it into a separate graph even in eager mode.
"""

import numpy

from workloads import compat

PARAMS = {
    "api": ("keras", "tf.keras"),
    "mode": ("eager", "graph"),
}

COMPARISONS = {"api": "keras", "mode": "graph"}


def refuse(tf, params):
    return compat.keras_refusal(tf, params["api"], params["mode"])


def build(tf, params):
    compat.use_mode(tf, params["mode"])
    keras = compat.keras(tf, params["api"])
    layers = keras.layers
    inputs = layers.Input(shape=(10,))
    model = keras.models.Model(inputs, layers.Dense(2)(layers.Dense(32)(inputs)))
    model.compile(compat.adam(keras, 1e-3, params["mode"]), loss="mse")
    compat.fix_weights(model, 1)
    x = numpy.random.RandomState(1).randn(1, 10).astype("float32")
    return lambda: model.predict(x, verbose=0)
