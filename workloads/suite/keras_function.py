"""One forward pass of a small float64 net, with a tf.function around the model or without one.

The net is `pde` of train_tiny: three Dense of 10 with tanh, and a cutoff at both ends. It gets a hundred points.
"""

import numpy

from workloads import compat

PARAMS = {
    "call": ("function", "eager"),
}

COMPARISONS = {"call": "function"}

POINTS = 100


def build(tf, params):
    compat.use_mode(tf, "eager")
    keras = tf.keras
    keras.backend.set_floatx("float64")
    x = inputs = keras.layers.Input(shape=(1,))
    for _ in range(3):
        x = keras.layers.Dense(10, activation="tanh")(x)
    x = keras.layers.Dense(1, activation="tanh")(x)
    cutoff = keras.layers.Lambda(lambda both: both[0] * (both[0] - numpy.pi) * both[1])
    model = keras.models.Model(inputs, cutoff([inputs, x]))
    compat.fix_weights(model, 1)
    points = tf.constant(numpy.linspace(0, numpy.pi, POINTS).reshape(-1, 1))
    if params["call"] == "function":
        forward = compat.function(tf, lambda x: model(x))
        return lambda: forward(points)
    return lambda: model(points)
