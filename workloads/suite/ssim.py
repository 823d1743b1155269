"""The structural similarity (tf.image.ssim) of a pair of grey images of 500x500, new ones in each call.

The report has thirty pairs in a batch; here there is one.
"""

from workloads import compat

PARAMS = {
    "pairs": ("1",),
}

SIDE = 500


def build(tf, params):
    compat.use_mode(tf, "eager")
    shape = (int(params["pairs"]), SIDE, SIDE, 1)

    def step():
        tf.image.ssim(tf.random.normal(shape), tf.random.normal(shape), 1).numpy()

    step.no_result = "each version draws other random numbers"
    return step
