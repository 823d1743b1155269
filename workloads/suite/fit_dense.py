"""One step of a `fit` of ten Dense layers with Dropout between them, with the AUC metric or with none.

The batch is 500 rows of four numbers. XLA is off wherever `compile` has a switch for it.
"""

import numpy

from workloads import compat

PARAMS = {
    "metric": ("auc", "none"),
}

COMPARISONS = {"metric": "none"}

# An epoch of the report has 500 steps, which take too long here. The start of `fit` is a small part of 200.
STEPS, BATCH = 200, 500


def refuse(tf, params):
    if params["metric"] == "auc" and not hasattr(tf.keras.metrics, "AUC"):
        return "This Keras has no AUC metric."
    return None


def build(tf, params):
    keras = tf.keras
    x = inputs = keras.layers.Input(shape=(4,))
    for _ in range(10):
        x = keras.layers.Dense(128, activation="relu")(x)
        x = keras.layers.Dropout(compat.KEEP_ALL)(x)
    model = keras.models.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(x))
    model.compile(
        compat.adam(keras, 1e-3, "eager"),
        loss=keras.losses.BinaryCrossentropy(label_smoothing=0.05),
        metrics=[keras.metrics.AUC(name="auc")] if params["metric"] == "auc" else [],
        **compat.compile_jit(model, False),
    )
    compat.fix_weights(model, 1)
    draw = numpy.random.RandomState(1)
    x = draw.normal(size=(STEPS * BATCH, 4))
    y = draw.randint(0, 2, (STEPS * BATCH, 1)).astype("float64")

    def step():
        return model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0).history["loss"][-1]

    step.steps = STEPS
    return step
