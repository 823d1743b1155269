"""Five training steps of a recommender whose weights are nearly all in embeddings, in a call of `fit` with Adam.

cpu  8 tables of 20,000 rows, 256 clicks
gpu  26 tables of 200,000 rows, 4,096 clicks

Its items are clicks. A click has one row of each table and 13 numbers.
"""

import numpy

from workloads import training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are clicks, tables, rows and width.
SIZES = {"cpu": (256, 8, 20000, 16), "gpu": (4096, 26, 200000, 64)}
NUMBERS = 13


def refuse(tf, params):
    return training.size_refusal(tf, params)


def build(tf, params):
    keras, layers = tf.keras, tf.keras.layers
    batch, tables, rows, width = SIZES[params["size"]]
    numbers = layers.Input(shape=(NUMBERS,))
    ids = [layers.Input(shape=(1,), dtype="int32") for _ in range(tables)]
    dense = layers.Dense(width, activation="relu")(layers.Dense(4 * width, activation="relu")(numbers))
    found = [layers.Flatten()(layers.Embedding(rows, width)(one)) for one in ids]
    x = layers.Concatenate()([dense] + found)
    for units in (8 * width, 4 * width):
        x = layers.Dense(units, activation="relu")(x)
    model = keras.models.Model([numbers] + ids, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", loss="binary_crossentropy")
    draw = numpy.random.RandomState(1)
    clicks = [draw.rand(batch, NUMBERS).astype("float32")]
    clicks += [draw.randint(0, rows, (batch, 1)).astype("int32") for _ in range(tables)]
    return training.fit(model, clicks, draw.randint(0, 2, (batch, 1)).astype("float32"))
