"""An epoch of `fit` on a small dataset, with and without the thread that tunes a dataset while it is read."""

import numpy as np

PARAMS = {"tuning": ("on", "off"), "rows": (1024, 4096)}
BATCH = 32


def build(tf, params):
    tf.random.set_seed(1)
    draw = np.random.RandomState(1)
    x, y = draw.rand(params["rows"], 784).astype("float32"), draw.randint(0, 10, params["rows"])
    layers = tf.keras.layers
    net = tf.keras.Sequential(
        [
            tf.keras.Input(shape=(784,)),
            layers.Dense(256, activation="relu"),
            layers.Dense(256, activation="relu"),
            layers.Dense(10),
        ]
    )
    net.compile(optimizer="sgd", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).prefetch(2)
    if params["tuning"] == "off":
        data = data.with_options(_without_tuning(tf))
    return lambda: net.fit(data, epochs=1, verbose=0).history["loss"][0]


def _without_tuning(tf):
    options = tf.data.Options()
    if hasattr(options, "autotune"):
        options.autotune.enabled = False
    else:
        options.experimental_optimization.autotune = False
    return options
