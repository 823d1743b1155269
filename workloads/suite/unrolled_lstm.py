"""The first call of an unrolled LSTM over 300 time steps, with a tape: as it is, or in a tf.function.

The layer, its 256 units and its input are those of the report. Its weights are made in the first call, as there.
"""

from workloads import compat

PARAMS = {
    "style": ("eager", "function"),
}

COMPARISONS = {"style": "eager"}

STEPS, UNITS = 300, 256


def refuse(tf, params):
    if compat.version(tf) < (2,):
        return "TensorFlow 1 has no tf.function that makes variables in its first call."
    return None


def build(tf, params):
    layer = tf.keras.layers.LSTM(UNITS, return_state=True, unroll=True)

    def forward():
        return layer(tf.zeros((1, STEPS, UNITS)))

    call = compat.function(tf, forward) if params["style"] == "function" else forward

    def step():
        with tf.GradientTape():
            outputs = call()
        return outputs[0]

    step.no_result = "of zeros, this layer returns zeros whatever its weights are"
    return step
