"""A prediction of an LSTM layer with the same weights in every version: with its own defaults, or with one that is named.

default   recurrent_activation is left to Keras
sigmoid   recurrent_activation="sigmoid"
"""

import numpy

from workloads import compat

PARAMS = {
    "activation": ("default", "sigmoid"),
}

COMPARISONS = {"activation": "sigmoid"}

BATCH, STEPS, FEATURES, UNITS = 8, 10, 4, 16


def build(tf, params):
    layers = tf.keras.layers
    options = {} if params["activation"] == "default" else {"recurrent_activation": params["activation"]}
    inputs = layers.Input(shape=(STEPS, FEATURES))
    model = tf.keras.models.Model(inputs, layers.LSTM(UNITS, **options)(inputs))
    compat.fix_weights(model, 1)
    x = numpy.random.RandomState(1).randn(BATCH, STEPS, FEATURES).astype("float32")
    return lambda: model.predict(x, verbose=0)
