"""What `fit` does with arrays before anything is computed, for one of 200 batches, eagerly or in graph mode.

eager  Keras makes a dataset of the arrays, and an iterator hands out its batches as tensors
graph  Keras checks the arrays, takes a slice of them for each batch, and feeds it to a session

No net is run: in graph mode the session gets the arrays and computes nothing. The parts are those that `fit` of
TensorFlow 2.0 calls, so this runs only there.
"""

import itertools

import numpy

from workloads import compat

PARAMS = {
    "mode": ("graph", "eager"),
}

COMPARISONS = {"mode": "graph"}

STEPS, BATCH, FEATURES = 200, 32, 10


def refuse(tf, params):
    if compat.version(tf)[:2] != (2, 0):
        return "Only the Keras of TensorFlow 2.0 processes its input in these functions."
    return None


def build(tf, params):
    compat.use_mode(tf, params["mode"])
    layers = tf.keras.layers
    inputs = layers.Input(shape=(FEATURES,))
    model = tf.keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(inputs))
    model.compile(compat.adam(tf.keras, 1e-3, params["mode"]), loss="binary_crossentropy")
    draw = numpy.random.RandomState(1)
    x = draw.rand(STEPS * BATCH, FEATURES).astype("float32")
    y = draw.randint(0, 2, (STEPS * BATCH, 1)).astype("float32")
    process = process_eagerly(model) if params["mode"] == "eager" else process_in_graph(tf, model)

    def step():
        return process(x, y)

    step.steps = STEPS
    return step


def process_eagerly(model):
    from tensorflow.python.keras.engine import training_v2

    def process(x, y):
        adapter = training_v2._process_inputs(model, x, y, batch_size=BATCH, shuffle=False)
        # The dataset repeats the arrays without end.
        for batch in itertools.islice(adapter.get_dataset(), STEPS):
            pass
        return batch

    return process


def process_in_graph(tf, model):
    from tensorflow.python.keras.utils.generic_utils import slice_arrays

    backend = tf.keras.backend
    nothing = tf.constant(0.0)
    feed = backend.function([backend.placeholder((None, FEATURES)), backend.placeholder((None, 1))], [nothing])

    def process(x, y):
        xs, ys, _ = model._standardize_user_data(x, y, batch_size=BATCH)
        rows = numpy.arange(len(x))
        for begin in range(0, len(rows), BATCH):
            batch = slice_arrays(xs + ys, rows[begin : begin + BATCH])
            feed(batch)
        return batch

    return process
