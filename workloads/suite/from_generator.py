"""One record of a dataset, made of slices of an array or by a Python generator, with one number or ten in a record.

The records come in batches of a hundred. A call iterates over two thousand records; the report has a hundred thousand.
"""

import numpy

from workloads import compat

PARAMS = {
    "source": ("slices", "generator"),
    "fields": ("1", "10"),
}

COMPARISONS = {"source": "slices", "fields": "1"}

RECORDS, BATCH = 2000, 100


def build(tf, params):
    compat.use_mode(tf, "eager")
    fields = int(params["fields"])
    columns = tuple(numpy.random.RandomState(1).rand(fields, RECORDS))
    if params["source"] == "slices":
        dataset = tf.data.Dataset.from_tensor_slices(columns)
    else:
        dataset = tf.data.Dataset.from_generator(lambda: zip(*columns), (tf.float64,) * fields, ((),) * fields)
    dataset = dataset.batch(BATCH)

    def step():
        for batch in dataset:
            pass
        return batch

    step.steps = RECORDS
    return step
