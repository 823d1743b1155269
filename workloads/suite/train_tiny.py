"""One training step of nets so small that little but overhead is left.

mlp   8 inputs, three hidden layers of 40, 9 outputs
lstm  12 features, one time step, LSTM 20, three Dense, batches of 250
pde   float64, three Dense of 10 with tanh, a cutoff at both ends, a custom loss

Each net is from a report that says how slow the net became. A `fit` goes over many batches or, with `pde`, over
many epochs of the only batch there is; its time is shown per step. `pde` has 200 epochs, so that the start of a fit is
a small part of it, and a loss that is simpler than the report's.
"""

import numpy

from workloads import compat

PARAMS = {
    "model": ("mlp", "lstm", "pde"),
    "loop": ("train_on_batch", "fit"),
}

COMPARISONS = {"loop": "train_on_batch"}


def build(tf, params):
    make, loss, shape, outputs, batches, epochs = MODELS[params["model"]]
    dtype = "float64" if params["model"] == "pde" else "float32"
    tf.keras.backend.set_floatx(dtype)
    model = make(tf.keras, shape[1:])
    model.compile("adam", loss=loss)
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    x = draw.rand(batches * shape[0], *shape[1:]).astype(dtype)
    y = draw.randint(0, 2, (len(x), outputs)).astype(dtype)
    if params["loop"] == "train_on_batch":
        x, y = x[: shape[0]], y[: shape[0]]
        return lambda: model.train_on_batch(x, y)

    def step():
        history = model.fit(x, y, batch_size=shape[0], epochs=epochs, shuffle=False, verbose=0)
        return history.history["loss"][-1]

    step.steps = batches * epochs
    return step


def mlp(keras, shape):
    x = inputs = keras.layers.Input(shape=shape)
    for _ in range(3):
        x = keras.layers.Dense(40, activation="relu")(x)
    return keras.models.Model(inputs, keras.layers.Dense(9)(x))


def lstm(keras, shape):
    inputs = keras.layers.Input(shape=shape)
    x = keras.layers.LSTM(20)(inputs)
    for units in (20, 16, 8):
        x = keras.layers.Dense(units, activation="relu")(x)
    return keras.models.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(x))


def pde(keras, shape):
    x = inputs = keras.layers.Input(shape=shape)
    for _ in range(3):
        x = keras.layers.Dense(10, activation="tanh")(x)
    x = keras.layers.Dense(1, activation="tanh")(x)
    cutoff = keras.layers.Lambda(lambda both: both[0] * (both[0] - numpy.pi) * both[1])
    return keras.models.Model(inputs, cutoff([inputs, x]))


def own_loss(expected, predicted):
    difference = expected - predicted
    return difference * difference


# Each row holds the function that builds the net, the loss, the shape of a batch, the number of outputs, and the
# numbers of batches and epochs of a fit.
MODELS = {
    "mlp": (mlp, "mse", (32, 8), 9, 200, 1),
    "lstm": (lstm, "binary_crossentropy", (250, 1, 12), 1, 20, 1),
    "pde": (pde, own_loss, (100, 1), 1, 1, 200),
}
