"""One step of Q-learning on a chain of five states: three predictions and one training step on a single row.

predict_fit  `predict` and `fit`, as in the report
on_batch     `predict_on_batch` and `train_on_batch`

A state is a one-hot row. The net is that of the report. The report takes its chain from a package; this one is written
out: an action moves on or goes back to the start, and always does what was chosen. The report also takes random actions
and has many more steps in an episode than a call here.
"""

import numpy

from workloads import compat

PARAMS = {
    "calls": ("predict_fit", "on_batch"),
}

COMPARISONS = {"calls": "on_batch"}

STATES, ACTIONS, STEPS = 5, 2, 4
DISCOUNT = 0.95


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(STATES,))
    x = layers.Dense(10, activation="sigmoid")(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(ACTIONS)(x))
    model.compile("adam", loss="mse", metrics=["mae"])
    compat.fix_weights(model, 1)
    rows = numpy.identity(STATES, "float32")

    def predict(state):
        row = rows[state : state + 1]
        values = model.predict_on_batch(row) if params["calls"] == "on_batch" else model.predict(row, verbose=0)
        # predict_on_batch returns tensors in some versions.
        return numpy.array(values)

    def train(state, target):
        row = rows[state : state + 1]
        if params["calls"] == "on_batch":
            model.train_on_batch(row, target)
        else:
            model.fit(row, target, epochs=1, verbose=0)

    def step():
        state = 0
        for _ in range(STEPS):
            action = int(numpy.argmax(predict(state)))
            following, reward = move(state, action)
            best = numpy.max(predict(following))
            target = predict(state)
            target[0, action] = reward + DISCOUNT * best
            train(state, target)
            state = following
        return target

    step.steps = STEPS
    return step


def move(state, action):
    """Return the next state and the reward: ten at the end of the chain, two for a return to the start."""
    if action == 1:
        return 0, 2.0
    return (state, 10.0) if state == STATES - 1 else (state + 1, 0.0)
