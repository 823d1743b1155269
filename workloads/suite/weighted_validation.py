"""A `fit` of a small net for two epochs, with validation data that has a weight for every row or has none.

A thousand rows to train on and ten thousand to validate with.
"""

import numpy

from workloads import compat

PARAMS = {
    "weights": ("without", "with"),
}

COMPARISONS = {"weights": "without"}

ROWS, VALIDATION_ROWS = 1000, 10000


def build(tf, params):
    layers = tf.keras.layers
    x = inputs = layers.Input(shape=(10,))
    for _ in range(2):
        x = layers.Dense(64, activation="relu")(x)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    rows = numpy.random.RandomState(1).rand(ROWS + VALIDATION_ROWS, 12).astype("float32")
    x, y = rows[:ROWS, :10], rows[:ROWS, 10:11]
    validation = (rows[ROWS:, :10], rows[ROWS:, 10:11])
    if params["weights"] == "with":
        validation += (rows[ROWS:, 11],)

    def step():
        history = model.fit(x, y, epochs=2, validation_data=validation, shuffle=False, verbose=0)
        return history.history["val_loss"][-1]

    return step
