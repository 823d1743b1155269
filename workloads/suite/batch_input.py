"""`train_on_batch` of a net that does next to nothing, eagerly, with its batch as tensors or as numpy arrays.

The batches are those of the study of training loops: 32 sequences with 30 channels of normal float64 numbers, with 140
steps (small) or 1400 (medium). The net takes their mean and has one Dense of one unit, so little but the conversion of
the batch depends on how it comes. Tensors lie where the model does; arrays are copied there in each call.
"""

import numpy

from workloads import compat

PARAMS = {
    "input": ("tensors", "arrays"),
    "data": ("small", "medium"),
}

COMPARISONS = {"input": "tensors"}

BATCH_SHAPES = {
    "small": (32, 140, 30),
    "medium": (32, 1400, 30),
}


def build(tf, params):
    compat.use_mode(tf, "eager")
    layers = tf.keras.layers
    shape = BATCH_SHAPES[params["data"]]
    inputs = layers.Input(batch_shape=shape)
    mean = layers.GlobalAveragePooling1D()(inputs)
    model = tf.keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(mean))
    model.compile(compat.adam(tf.keras, 1e-4, "eager"), loss="binary_crossentropy")
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    x = draw.randn(*shape)
    y = draw.randint(0, 2, (shape[0], 1)).astype("float32")
    if params["input"] == "tensors":
        # A constant may stay on the host; the result of an operation lies on the GPU, if there is one.
        x, y = tf.constant(x) + 0.0, tf.constant(y) + 0.0
    return lambda: model.train_on_batch(x, y)
