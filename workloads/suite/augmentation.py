"""Random augmentation layers on a batch of 32 small images, inside a tf.function as in a training step.

The images are as in CIFAR: 32x32x3. `reported` is a horizontal flip, a vertical one and a translation, one after the
other, as in the report; the other cases have one layer each.
"""

import numpy

from workloads import compat

PARAMS = {
    "layer": ("flip", "translation", "rotation", "contrast", "reported"),
}

SHAPE = (32, 32, 32, 3)


def refuse(tf, params):
    for name, _ in LAYERS[params["layer"]]:
        if not hasattr(preprocessing(tf), name):
            return f"This Keras has no layer {name}."
    return None


def build(tf, params):
    compat.use_mode(tf, "eager")
    layers = [getattr(preprocessing(tf), name)(*arguments) for name, arguments in LAYERS[params["layer"]]]
    images = tf.constant(numpy.random.RandomState(1).rand(*SHAPE).astype("float32"))

    def apply_layers(batch):
        for layer in layers:
            batch = layer(batch, training=True)
        return batch

    augment = compat.function(tf, apply_layers)

    def step():
        augment(images).numpy()

    step.no_result = "each version draws other random numbers"
    return step


def preprocessing(tf):
    """Return the module with the layers, which before 2.6 is among the experimental ones."""
    if hasattr(tf.keras.layers, "RandomTranslation"):
        return tf.keras.layers
    return getattr(getattr(tf.keras.layers, "experimental", None), "preprocessing", None)


LAYERS = {
    "flip": (("RandomFlip", ("horizontal",)),),
    "translation": (("RandomTranslation", (0.2, 0.2)),),
    "rotation": (("RandomRotation", (0.1,)),),
    "contrast": (("RandomContrast", (0.2,)),),
    "reported": (
        ("RandomFlip", ("horizontal",)),
        ("RandomFlip", ("vertical",)),
        ("RandomTranslation", (0.2, 0.2)),
    ),
}
