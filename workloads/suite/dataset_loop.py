"""One turn of an empty Python loop over numbers, which come from an array or from a dataset of its slices.

A call goes through five thousand numbers; the report has a hundred thousand.
"""

import numpy

from workloads import compat

PARAMS = {
    "over": ("array", "dataset"),
}

COMPARISONS = {"over": "array"}

NUMBERS = 5000


def build(tf, params):
    compat.use_mode(tf, "eager")
    numbers = numpy.ones(NUMBERS, "float32")
    if params["over"] == "dataset":
        numbers = tf.data.Dataset.from_tensor_slices(numbers)

    def step():
        for _ in numbers:
            pass

    step.steps, step.no_result = NUMBERS, "the loop does nothing with the numbers"
    return step
