"""One random augmentation layer on a batch of 32 small images, inside a tf.function as in a training step.

The images are as in CIFAR: 32x32x3.
"""

import numpy

from workloads import compat

PARAMS = {
    "layer": ("flip", "translation", "rotation", "contrast"),
}

SHAPE = (32, 32, 32, 3)


def refuse(tf, params):
    if not hasattr(preprocessing(tf), NAMES[params["layer"]]):
        return "This Keras has no layer {}.".format(NAMES[params["layer"]])
    return None


def build(tf, params):
    compat.use_mode(tf, "eager")
    make = getattr(preprocessing(tf), NAMES[params["layer"]])
    layer = make(*ARGUMENTS[params["layer"]])
    images = tf.constant(numpy.random.RandomState(1).rand(*SHAPE).astype("float32"))
    augment = compat.function(tf, lambda batch: layer(batch, training=True))
    # Random, and drawn in another way in each version: no digit can agree.
    return lambda: numpy.isfinite(augment(images).numpy().sum())


def preprocessing(tf):
    """Where the layers are: before 2.6 among the experimental ones."""
    if hasattr(tf.keras.layers, "RandomTranslation"):
        return tf.keras.layers
    return getattr(getattr(tf.keras.layers, "experimental", None), "preprocessing", None)


NAMES = {
    "flip": "RandomFlip",
    "translation": "RandomTranslation",
    "rotation": "RandomRotation",
    "contrast": "RandomContrast",
}
ARGUMENTS = {"flip": ("horizontal",), "translation": (0.2, 0.2), "rotation": (0.1,), "contrast": (0.2,)}
