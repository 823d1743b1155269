"""What a `fit` of one new model after the other leaves behind in memory.

Each model is made, compiled and fitted to one batch, and forgotten with `clear_session`. All but one are fitted while the
case is built; a step fits one more. So both cases make the same number of timed calls, and their peak memory differs by
what the models before have left. The models are subclasses of `Model`, as in the report.
"""

import numpy

PARAMS = {
    "models": ("few", "many"),
}

COMPARISONS = {"models": "few"}

MODELS = {"few": 1, "many": 30}
# These layers are narrower than those of the report, whose weights take 840 MB.
WIDTHS, FEATURES, BATCH = (100, 1000, 1000, 100), 100, 32


def build(tf, params):
    layers = tf.keras.layers
    # Constant weights are the same in every version, unlike random ones.
    small = tf.keras.initializers.Constant(0.001)

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = [layers.Dense(width, activation="relu", kernel_initializer=small) for width in WIDTHS]

        def call(self, inputs):
            for layer in self.dense:
                inputs = layer(inputs)
            return inputs

    x = numpy.ones((BATCH, FEATURES), "float32")
    y = numpy.ones((BATCH, WIDTHS[-1]), "float32")

    def step():
        model = Net()
        model.compile("sgd", loss="mse")
        loss = model.fit(x, y, verbose=0).history["loss"][-1]
        tf.keras.backend.clear_session()
        return loss

    for _ in range(MODELS[params["models"]]):
        step()
    return step
