"""A `fit` with a convolution that must not be trained: it returns by how much its fixed kernel changed."""

import numpy

PARAMS = {}


def build(keras, params):
    x = inputs = keras.layers.Input(shape=(64, 1))
    frozen = keras.layers.Conv1D(
        4, 8, padding="same", use_bias=False, kernel_initializer=keras.initializers.Constant(0.5), trainable=False
    )
    x = keras.layers.GlobalAveragePooling1D()(frozen(x))
    head = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.1))
    model = keras.models.Model(inputs, head(x))
    model.compile(optimizer="sgd", loss="mse")
    draw = numpy.random.RandomState(0)
    data, targets = draw.rand(64, 64, 1).astype("float32"), draw.rand(64, 1).astype("float32")

    def step():
        model.fit(data, targets, batch_size=16, shuffle=False, verbose=0)
        return float(numpy.abs(numpy.asarray(frozen.get_weights()[0]) - 0.5).max())

    return step
