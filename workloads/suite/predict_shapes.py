"""Memory that many calls of `predict` leave behind when each image has another size.

All the calls of `calls` are made while the case is built; a step is one call more. So both cases make the same number
of timed calls, and their peak memory differs by what the calls before have left. The net is that of the report, a
convolution with 64 filters. The report's images have random sides of 128 to 1023; here they have 16 to 79, so that the
images themselves take little memory.
"""

import numpy

from workloads import compat

PARAMS = {
    "calls": ("few", "many"),
}

COMPARISONS = {"calls": "few"}

CALLS = {"few": 1, "many": 40}
SIDES = (16, 80)


def build(tf, params):
    layers = tf.keras.layers
    inputs = layers.Input(shape=(None, None, 3))
    model = tf.keras.models.Model(inputs, layers.Conv2D(64, 3, padding="same")(inputs))
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)

    def step():
        height, width = draw.randint(*SIDES, size=2)
        # The step returns one pixel, because all of them would be kept until the next call, and count as memory.
        return model.predict(numpy.ones((1, height, width, 3), "float32"), verbose=0)[0, 1, 1].copy()

    for _ in range(CALLS[params["calls"]]):
        step()
    return step
