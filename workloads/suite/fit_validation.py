"""One epoch of a `fit` of three Dense layers on 2048 rows, without validation or with one row or 256 rows to validate.

An epoch is one batch, and a call is one `fit` of 20 epochs.
"""

import numpy

from workloads import compat

PARAMS = {
    "validation": ("none", "one", "eighth"),
}

COMPARISONS = {"validation": "none"}

ROWS, EPOCHS = 2048, 20
VALIDATION_ROWS = {"one": 1, "eighth": ROWS // 8}


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(10,))
    x = layers.Dense(32, activation="relu")(inputs)
    x = layers.Dense(32, activation="relu")(x)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    rows = numpy.random.RandomState(1).rand(ROWS, 11).astype("float32")
    x, y = rows[:, :10], rows[:, 10:]
    validation = None
    if params["validation"] != "none":
        count = VALIDATION_ROWS[params["validation"]]
        validation = (x[:count], y[:count])

    def step():
        history = model.fit(x, y, batch_size=ROWS, epochs=EPOCHS, validation_data=validation, verbose=0)
        return history.history["loss"][-1]

    step.steps = EPOCHS
    return step
