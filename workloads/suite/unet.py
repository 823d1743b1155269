"""Five training steps of a U-Net that marks the pixels of images, in a call of `fit` with Adam.

cpu  8 to 32 filters, 4 images of 64x64
gpu  64 to 512 filters, 16 images of 256x256

Its items are images.
"""

import numpy

from workloads import training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are images, their side, and the filters from the top to the bottom.
SIZES = {"cpu": (4, 64, (8, 16, 32)), "gpu": (16, 256, (64, 128, 256, 512))}


def refuse(tf, params):
    return training.size_refusal(tf, params)


def build(tf, params):
    keras, layers = tf.keras, tf.keras.layers
    batch, side, filters = SIZES[params["size"]]
    x = inputs = layers.Input(shape=(side, side, 3))
    skipped = []
    for count in filters[:-1]:
        x = convolutions(layers, x, count)
        skipped.append(x)
        x = layers.MaxPooling2D()(x)
    x = convolutions(layers, x, filters[-1])
    for count, across in zip(filters[-2::-1], reversed(skipped)):
        x = layers.Concatenate()([layers.UpSampling2D()(x), across])
        x = convolutions(layers, x, count)
    model = keras.models.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))
    model.compile("adam", loss="binary_crossentropy")
    draw = numpy.random.RandomState(1)
    images = draw.rand(batch, side, side, 3).astype("float32")
    return training.fit(model, images, draw.randint(0, 2, (batch, side, side, 1)).astype("float32"))


def convolutions(layers, x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x
