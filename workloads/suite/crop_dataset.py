"""One random crop of 20x20 from the one element of a dataset, a small matrix or one a hundred times as large.

slices   the dataset is made with from_tensor_slices, which may copy the element each time
tensors  it is made with from_tensors

The small matrix is 200x500 and the large one 2000x5000. Those of the report have a hundred times as many numbers.
"""

import numpy

from workloads import compat

PARAMS = {
    "source": ("slices", "tensors"),
    "size": ("small", "large"),
}

COMPARISONS = {"size": "small"}

SHAPES = {"small": (200, 500), "large": (2000, 5000)}
CROP = (20, 20)


def build(tf, params):
    compat.use_mode(tf, "eager")
    matrix = numpy.ones(SHAPES[params["size"]], "float32")
    if params["source"] == "slices":
        dataset = tf.data.Dataset.from_tensor_slices(matrix[None])
    else:
        dataset = tf.data.Dataset.from_tensors(matrix)
    crops = iter(dataset.repeat().map(lambda image: tf.image.random_crop(image, CROP)))
    step = lambda: next(crops)
    step.no_result = "a random crop of nothing but ones"
    return step
