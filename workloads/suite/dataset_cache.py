"""One batch of 8192 rows from a dataset that is shuffled, cached, repeated, batched and prefetched.

21 000 rows of 373 numbers, all in memory. The first call also fills the shuffle buffer and the cache; a call is five
batches, which is about two epochs.
"""

import numpy

from workloads import compat

PARAMS = {
    "cache": ("without", "with"),
}

COMPARISONS = {"cache": "without"}

ROWS, WIDTH, BATCH = 21000, 373, 8192
BUFFER = 500000
BATCHES = 5


def build(tf, params):
    compat.use_mode(tf, "eager")
    draw = numpy.random.RandomState(1)
    rows = tf.constant(draw.rand(ROWS, WIDTH).astype("float32"))
    labels = tf.constant(draw.rand(ROWS, 1).astype("float32"))
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(BUFFER)
    if params["cache"] == "with":
        dataset = dataset.cache()
    dataset = dataset.repeat().batch(BATCH, drop_remainder=True).prefetch(tf.data.experimental.AUTOTUNE)
    iterator = iter(dataset)

    def step():
        for _ in range(BATCHES):
            next(iterator)

    step.steps, step.no_result = BATCHES, "each version shuffles the rows into another order"
    return step
