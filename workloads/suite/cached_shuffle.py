"""The first epoch of a cached dataset of five thousand rows of 1 kB, shuffled or not.

Each call makes a new dataset, so it fills the cache and the shuffle buffer, which holds all rows. Single rows are
shuffled, and a hundred of them make a batch.
"""

import numpy

from workloads import compat

PARAMS = {
    "shuffle": ("without", "with"),
}

COMPARISONS = {"shuffle": "without"}

ROWS, WIDTH, BATCH = 5000, 256, 100


def build(tf, params):
    compat.use_mode(tf, "eager")
    rows = tf.constant(numpy.random.RandomState(1).rand(ROWS, WIDTH).astype("float32"))

    def step():
        dataset = tf.data.Dataset.from_tensor_slices(rows).cache()
        if params["shuffle"] == "with":
            dataset = dataset.shuffle(ROWS)
        for batch in dataset.batch(BATCH):
            pass
        return batch

    if params["shuffle"] == "with":
        step.no_result = "each version shuffles the rows into another order"
    return step
