"""`tf.convert_to_tensor` of a list of twenty images, or of one array that numpy makes of the list first.

The images are integers of 200x200x3.
"""

import numpy

from workloads import compat

PARAMS = {
    "source": ("array", "list"),
}

COMPARISONS = {"source": "array"}

# The report converts a thousand.
IMAGES = 20


def build(tf, params):
    compat.use_mode(tf, "eager")
    draw = numpy.random.RandomState(1)
    images = [draw.randint(0, 256, (200, 200, 3)) for _ in range(IMAGES)]
    if params["source"] == "array":
        return lambda: tf.convert_to_tensor(numpy.asarray(images))
    return lambda: tf.convert_to_tensor(images)
