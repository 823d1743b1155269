"""A `fit` of a small net for two epochs, with validation data that has a weight for every row or has none.

A thousand rows to train on and a thousand to validate with.
"""

import numpy

PARAMS = {
    "weights": ("without", "with"),
}

CONTRASTS = {"weights": "without"}

ROWS = 1000


def build(tf, params):
    layers = tf.keras.layers
    x = inputs = layers.Input(shape=(10,))
    for _ in range(2):
        x = layers.Dense(64, activation="relu")(x)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile("adam", loss="mse")
    rows = numpy.random.RandomState(1).rand(ROWS, 12).astype("float32")
    x, y, weights = rows[:, :10], rows[:, 10:11], rows[:, 11]
    validation = (x, y, weights) if params["weights"] == "with" else (x, y)

    def step():
        history = model.fit(x, y, epochs=2, validation_data=validation, verbose=0)
        return numpy.isfinite(history.history["val_loss"][-1])

    return step
