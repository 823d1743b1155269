"""One training step of a SimpleRNN over a thousand time steps, in each version's own mode or in that of TensorFlow 1.

default   each version's own mode
graph_v1  eager execution and the newer control flow (v2) are switched off

batches  how many batches an epoch has. A call is a `fit` of ten steps: ten epochs of one batch, or one epoch of ten.

The sequences have a thousand steps and a hundred features, as in the report. The layer has a hundred units instead of a
thousand, and a batch eight sequences instead of 64.
"""

import numpy

from workloads import compat

PARAMS = {
    "mode": ("default", "graph_v1"),
    "batches": ("one", "ten"),
}

COMPARISONS = {"mode": "graph_v1"}

BATCH, STEPS, FEATURES, UNITS = 8, 1000, 100, 100
FITTED_STEPS = 10
BATCHES = {"one": 1, "ten": FITTED_STEPS}


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
    model = tf.keras.models.Model(inputs, layers.Dense(1)(layers.SimpleRNN(UNITS)(inputs)))
    model.compile(compat.adam(tf.keras, 1e-3, mode), loss="mse")
    compat.fix_weights(model, 1)
    batches = BATCHES[params["batches"]]
    draw = numpy.random.RandomState(1)
    x = draw.rand(batches * BATCH, STEPS, FEATURES).astype("float32")
    y = draw.rand(batches * BATCH, 1).astype("float32")

    def step():
        history = model.fit(x, y, batch_size=BATCH, epochs=FITTED_STEPS // batches, shuffle=False, verbose=0)
        return history.history["loss"][-1]

    step.steps = FITTED_STEPS
    return step
