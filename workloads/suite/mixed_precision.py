"""One step of a `fit` of a small dense net on images like MNIST's, in float32 or in mixed_float16.

Flatten, Dense 128, Dropout, Dense 10, batches of 32; the softmax stays float32, as Keras's guide asks.
"""

import numpy

from workloads import compat

PARAMS = {
    "policy": ("float32", "mixed_float16"),
}

COMPARISONS = {"policy": "float32"}

# The set-up of `fit` is a small part of this many steps, as of the report's 1875.
STEPS, BATCH = 50, 32


def build(tf, params):
    compat.set_precision(tf, params["policy"])
    keras = tf.keras
    inputs = keras.layers.Input(shape=(28, 28))
    x = keras.layers.Flatten()(inputs)
    x = keras.layers.Dense(128, activation="relu")(x)
    x = keras.layers.Dropout(compat.KEEP_ALL)(x)
    x = keras.layers.Dense(10)(x)
    model = keras.models.Model(inputs, keras.layers.Activation("softmax", dtype="float32")(x))
    model.compile("adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    images = draw.rand(STEPS * BATCH, 28, 28).astype("float32")
    labels = draw.randint(0, 10, (STEPS * BATCH, 1))

    def step():
        return model.fit(images, labels, batch_size=BATCH, shuffle=False, verbose=0).history["loss"][-1]

    step.steps = STEPS
    return step
