"""One `fit` or `evaluate` of a small net on the same hundred rows, after few such calls or after many.

All the calls of `before` are made while the case is built; a step is one call more. So both cases make the same number
of timed calls, and their peak memory differs by what the calls before have left.
"""

import numpy

from workloads import compat

PARAMS = {
    "call": ("fit", "evaluate"),
    "before": ("few", "many"),
}

COMPARISONS = {"before": "few"}

ROWS = 100
CALLS = {"few": 1, "many": 40}


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(10,))
    x = layers.Dense(32, activation="relu")(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    rows = numpy.random.RandomState(1).rand(ROWS, 11).astype("float32")
    x, y = rows[:, :10], rows[:, 10:]

    def step():
        if params["call"] == "evaluate":
            return model.evaluate(x, y, verbose=0)
        return model.fit(x, y, shuffle=False, verbose=0).history["loss"][-1]

    for _ in range(CALLS[params["before"]]):
        step()
    return step
