"""One epoch of a regression through ten points, out of many in one `fit`: almost nothing but overhead.

mode        default: each version's own; graph: eager execution is switched off
validation  none, or ten points more after each epoch

The net has 13 parameters, as in the report. The report trains for 2000 epochs, and a `fit` here for a hundred.
"""

import numpy

from workloads import compat

PARAMS = {
    "validation": ("none", "plain"),
    "mode": ("default", "graph"),
}

COMPARISONS = {"validation": "none", "mode": "graph"}

EPOCHS = 100
POINTS = 10


def refuse(tf, params):
    return compat.mode_refusal(tf, "graph") if params["mode"] == "graph" else None


def build(tf, params):
    if params["mode"] == "graph":
        compat.use_mode(tf, "graph")
    layers = tf.keras.layers
    inputs = layers.Input(shape=(1,))
    hidden = layers.Dense(4, activation="relu")(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(hidden))
    adam_mode = "graph" if params["mode"] == "graph" else "eager"
    model.compile(compat.adam(tf.keras, 1e-3, adam_mode), loss="mse")
    compat.fix_weights(model, 1)
    x = numpy.linspace(-1, 1, POINTS, dtype="float32").reshape(-1, 1)
    validation = (x + 0.1, x * x) if params["validation"] == "plain" else None

    def step():
        history = model.fit(x, x * x, epochs=EPOCHS, validation_data=validation, verbose=0)
        return history.history["loss"][-1]

    step.steps = EPOCHS
    return step
