"""One forward pass of an image classifier, called eagerly or inside a tf.function.

efficientnet_v2s  a picture of 384x384
mobilenet_v2      a picture of 224x224; every version has it

One picture of float64 numbers, as numpy makes them, and random weights that are the same in every version. TensorFlow 1
takes the picture as float32, because its models do not cast.

The softmax at the end is left out. On random weights it says one in a thousand for every class, and a wrong result
would not show.
"""

import numpy

from workloads import compat

PARAMS = {
    "net": ("efficientnet_v2s", "mobilenet_v2"),
    "style": ("eager", "function", "jit_false", "jit_true"),
}

COMPARISONS = {"style": "eager"}

NETS = {
    "efficientnet_v2s": ("efficientnet_v2", "EfficientNetV2S", 384),
    "mobilenet_v2": ("mobilenet_v2", "MobileNetV2", 224),
}

JIT = {"function": None, "jit_false": False, "jit_true": True}


def refuse(tf, params):
    family, name, _ = NETS[params["net"]]
    if not hasattr(tf.keras.applications, family):
        return f"tf.keras.applications of this TensorFlow has no {name}."
    if JIT.get(params["style"]) is not None:
        return compat.jit_refusal(tf)
    return None


def build(tf, params):
    compat.use_mode(tf, "eager")
    family, name, side = NETS[params["net"]]
    model = getattr(getattr(tf.keras.applications, family), name)(weights=None)
    model.layers[-1].activation = None
    compat.fix_weights(model, 1)
    picture = compat.model_input(tf, numpy.random.RandomState(1).random_sample((1, side, side, 3)))
    if params["style"] == "eager":
        return lambda: model(picture)
    forward = compat.function(tf, model, JIT[params["style"]])
    return lambda: forward(picture)
