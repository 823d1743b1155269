"""One epoch of training on arrays of 256 MiB, with `fit` or with `train_on_batch` on one slice after the other.

The net is a mean over each image and a Dense of one unit, so that the arrays are most of the memory. Compare the peak
memory: the times are those of two loops that do different work.
"""

import numpy

from workloads import compat

PARAMS = {
    "loop": ("train_on_batch", "fit"),
}

COMPARISONS = {"loop": "train_on_batch"}

IMAGES, SIDE, BATCH = 4096, 128, 64


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(SIDE, SIDE, 1))
    x = layers.GlobalAveragePooling2D()(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1)(x))
    model.compile("adam", loss="mse")
    compat.fix_weights(model, 1)
    images = numpy.ones((IMAGES, SIDE, SIDE, 1), "float32")
    targets = numpy.ones((IMAGES, 1), "float32")

    def step():
        if params["loop"] == "fit":
            return model.fit(images, targets, batch_size=BATCH, verbose=0).history["loss"][-1]
        for begin in range(0, IMAGES, BATCH):
            loss = model.train_on_batch(images[begin : begin + BATCH], targets[begin : begin + BATCH])
        return loss

    return step
