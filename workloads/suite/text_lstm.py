"""Five training steps of an LSTM that classifies texts, in a call of `fit` with Adam.

cpu  64 units, 32 texts of 80 tokens
gpu  512 units, 128 texts of 400 tokens

Its items are texts. The gates are sigmoid in every version; in TensorFlow 1 the default is hard_sigmoid.
"""

import numpy

from workloads import training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are texts, tokens and units.
SIZES = {"cpu": (32, 80, 64), "gpu": (128, 400, 512)}
VOCABULARY = 5000


def refuse(tf, params):
    return training.size_refusal(tf, params)


def build(tf, params):
    keras, layers = tf.keras, tf.keras.layers
    batch, length, units = SIZES[params["size"]]
    tokens = layers.Input(shape=(length,), dtype="int32")
    x = layers.Embedding(VOCABULARY, units)(tokens)
    x = layers.LSTM(units, recurrent_activation="sigmoid")(x)
    model = keras.models.Model(tokens, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", loss="binary_crossentropy")
    draw = numpy.random.RandomState(1)
    texts = draw.randint(0, VOCABULARY, (batch, length)).astype("int32")
    return training.fit(model, texts, draw.randint(0, 2, (batch, 1)).astype("float32"))
