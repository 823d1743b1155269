"""One call of the signature of a SavedModel, as a server makes it: a convolutional net that was saved and loaded.

cpu  8 images of 64x64
gpu  64 images of 224x224

Its items are images. A version serves what it has saved itself.
"""

import shutil
import tempfile

import numpy

from workloads import compat, training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are images, their side and the filters of the first layer.
SIZES = {"cpu": (8, 64, 16), "gpu": (64, 224, 64)}


def refuse(tf, params):
    if compat.version(tf) < (2,):
        return "Signatures are called as functions from 2.0 on."
    return training.size_refusal(tf, params)


def build(tf, params):
    batch, side, filters = SIZES[params["size"]]
    folder = tempfile.mkdtemp(prefix="served-")
    try:
        save(tf, folder, side, filters)
        loaded = tf.saved_model.load(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    serve = loaded.signatures["serving_default"]
    images = tf.constant(numpy.random.RandomState(1).rand(batch, side, side, 3).astype("float32"))

    def step():
        # The loaded object has to live as long as its signature.
        return serve(images=images) if loaded else None

    step.items = batch
    return step


def save(tf, folder, side, filters):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(side, side, 3))
    x = inputs
    for factor in (1, 2, 4):
        x = layers.Conv2D(factor * filters, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    module = tf.Module()
    module.model = tf.keras.models.Model(inputs, layers.Dense(10, activation="softmax")(x))
    compat.fix_weights(module.model, 1)

    @tf.function(input_signature=[tf.TensorSpec((None, side, side, 3), tf.float32, "images")])
    def serve(images):
        return {"scores": module.model(images)}

    tf.saved_model.save(module, folder, signatures={"serving_default": serve})
