"""One epoch of a `fit` of a small classifier, with a weight for each class or with none.

A thousand rows in batches of 32; a call is one `fit` of five epochs.
"""

import numpy

PARAMS = {
    "weights": ("without", "with"),
}

CONTRASTS = {"weights": "without"}

EPOCHS, ROWS = 5, 1000


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(10,))
    x = layers.Dense(64, activation="relu")(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", loss="binary_crossentropy")
    draw = numpy.random.RandomState(1)
    x = draw.rand(ROWS, 10).astype("float32")
    y = draw.randint(0, 2, (ROWS, 1)).astype("float32")
    weights = {0: 0.5, 1: 2.0} if params["weights"] == "with" else None

    def step():
        return numpy.isfinite(model.fit(x, y, epochs=EPOCHS, class_weight=weights, verbose=0).history["loss"][-1])

    step.steps = EPOCHS
    return step
