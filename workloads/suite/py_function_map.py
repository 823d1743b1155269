"""One element of a dataset that is mapped with `tf.py_function`: Python code in an input pipeline.

The function adds one to a small array. The report's function makes a batch of images, which takes most of its time.
Here most of the time goes into calling Python and returning.
"""

import numpy

from workloads import compat

PARAMS = {
    "elements": ("200",),
}


def build(tf, params):
    compat.use_mode(tf, "eager")
    elements = int(params["elements"])

    def add(values):
        return numpy.asarray(values) + 1.0

    dataset = tf.data.Dataset.from_tensor_slices(numpy.zeros((elements, 16), "float32"))
    dataset = dataset.map(lambda values: tf.py_function(add, [values], tf.float32))

    def step():
        for values in dataset:
            pass
        return values

    step.steps = elements
    return step
