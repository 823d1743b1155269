"""One epoch of a `fit` on 5000 rows that have a weight each, or none.

The net and the shares of the data are those of the report, which has a million rows: 80 % of the rows train the net in
batches of 1 % of all rows, and 20 % validate it. A call is one `fit`, so the start of `fit` is a part of it.
"""

import numpy

PARAMS = {
    "weights": ("without", "with"),
}

CONTRASTS = {"weights": "without"}

ROWS, WIDTH = 5000, 10


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(WIDTH,))
    x = layers.Dense(2 * WIDTH, activation="tanh")(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile("adam", loss="mse")
    rows = numpy.random.RandomState(1).rand(ROWS, WIDTH + 2).astype("float32")
    x, y = rows[:, :WIDTH], rows[:, WIDTH : WIDTH + 1]
    weights = rows[:, WIDTH + 1] if params["weights"] == "with" else None

    def step():
        history = model.fit(
            x, y, sample_weight=weights, batch_size=ROWS // 100, epochs=1, validation_split=0.2, verbose=0
        )
        return numpy.isfinite(history.history["val_loss"][-1])

    return step
