"""One training step of a recurrent layer over 50 time steps, in a `fit` of ten batches.

default   each version's own mode
graph_v1  eager execution and the newer control flow (v2) are switched off

A batch has 16 sequences of 16 features, and the layer has 64 units.
"""

import numpy

from workloads import compat

PARAMS = {
    "layer": ("SimpleRNN", "LSTM"),
    "mode": ("default", "graph_v1"),
}

COMPARISONS = {"mode": "graph_v1"}

BATCHES, BATCH, STEPS, FEATURES, UNITS = 10, 16, 50, 16, 64


def refuse(tf, params):
    return compat.mode_refusal(tf, "graph") if params["mode"] == "graph_v1" else None


def build(tf, params):
    mode = "eager"
    if params["mode"] == "graph_v1":
        mode = "graph"
        compat.use_mode(tf, mode)
        if compat.version(tf) >= (2,):
            tf.compat.v1.disable_control_flow_v2()
    layers = tf.keras.layers
    inputs = layers.Input(shape=(STEPS, FEATURES))
    x = getattr(layers, params["layer"])(UNITS)(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile(compat.adam(tf.keras, 1e-3, mode), loss="mse")
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    x = draw.rand(BATCHES * BATCH, STEPS, FEATURES).astype("float32")
    y = draw.rand(BATCHES * BATCH, 1).astype("float32")

    def step():
        return model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0).history["loss"][-1]

    step.steps = BATCHES
    return step
