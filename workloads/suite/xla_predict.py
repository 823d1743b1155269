"""A MobileNetV3 compiled by XLA on ten images: `predict` of the model, or a tf.function around it.

predict   `compile(jit_compile=True)`, then `predict`
function  `tf.function(model, jit_compile=True)`

The report takes images of 224x224x3; the weights are random here.
"""

import numpy

from workloads import compat

PARAMS = {
    "call": ("function", "predict"),
    "size": ("64", "224"),
}

COMPARISONS = {"call": "function"}


def refuse(tf, params):
    if not hasattr(tf.keras.applications, "MobileNetV3Large"):
        return "This Keras has no MobileNetV3."
    return None


def build(tf, params):
    shape = (int(params["size"]),) * 2 + (3,)
    model = tf.keras.applications.MobileNetV3Large(input_shape=shape, weights=None)
    compat.fix_weights(model, 1)
    images = tf.constant(numpy.random.RandomState(1).randn(10, *shape).astype("float32"))
    if params["call"] == "predict":
        model.compile(**compat.compile_jit(model, True))
        return lambda: model.predict(images, verbose=0)
    call = compat.function(tf, lambda batch: model(batch, training=False), jit=True)
    return lambda: call(images)
