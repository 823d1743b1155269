"""Five training steps of a residual network on images, in a call of `fit` with Adam.

cpu  three stages of two blocks, 16 to 64 filters, 32 images of 32x32
gpu  ResNet50 of keras.applications on 64 images of 224x224

Its items are images.
"""

import numpy

from workloads import training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are images, their side, and classes.
SIZES = {"cpu": (32, 32, 10), "gpu": (64, 224, 1000)}


def refuse(tf, params):
    return training.size_refusal(tf, params)


def build(tf, params):
    keras, (batch, side, classes) = tf.keras, SIZES[params["size"]]
    model = small(keras, side, classes) if params["size"] == "cpu" else keras.applications.ResNet50(weights=None)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    draw = numpy.random.RandomState(1)
    images = draw.rand(batch, side, side, 3).astype("float32")
    return training.fit(model, images, draw.randint(0, classes, (batch, 1)).astype("int32"))


def small(keras, side, classes):
    layers = keras.layers
    inputs = layers.Input(shape=(side, side, 3))
    x = convolution(layers, inputs, 16)
    for filters, strides in ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        x = block(layers, x, filters, strides)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.models.Model(inputs, layers.Dense(classes, activation="softmax")(x))


def convolution(layers, x, filters, strides=1):
    x = layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(x)
    return layers.Activation("relu")(layers.BatchNormalization()(x))


def block(layers, x, filters, strides):
    through = layers.Conv2D(filters, 3, padding="same", use_bias=False)(convolution(layers, x, filters, strides))
    through = layers.BatchNormalization()(through)
    around = layers.Conv2D(filters, 1, strides=strides, use_bias=False)(x)
    return layers.Activation("relu")(layers.Add()([through, around]))
