"""Five training steps of a transformer that classifies texts, in a call of `fit` with Adam.

cpu  two blocks of width 64 with four heads, 16 texts of 64 tokens
gpu  six blocks of width 512 with eight heads, 64 texts of 256 tokens

Its items are texts. It needs MultiHeadAttention, which came with 2.4.
"""

import numpy

from workloads import training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are texts, tokens, width, heads and blocks.
SIZES = {"cpu": (16, 64, 64, 4, 2), "gpu": (64, 256, 512, 8, 6)}
VOCABULARY, CLASSES = 8000, 4


def refuse(tf, params):
    if not hasattr(tf.keras.layers, "MultiHeadAttention"):
        return "tf.keras of this TensorFlow has no MultiHeadAttention."
    return training.size_refusal(tf, params)


def build(tf, params):
    keras, layers = tf.keras, tf.keras.layers
    batch, length, width, heads, blocks = SIZES[params["size"]]
    tokens = layers.Input(shape=(length,), dtype="int32")
    places = layers.Input(shape=(length,), dtype="int32")
    x = layers.Add()([layers.Embedding(VOCABULARY, width)(tokens), layers.Embedding(length, width)(places)])
    for _ in range(blocks):
        attended = layers.MultiHeadAttention(heads, width // heads)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        thought = layers.Dense(width)(layers.Dense(4 * width, activation="relu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, thought]))
    x = layers.Dense(CLASSES, activation="softmax")(layers.GlobalAveragePooling1D()(x))
    model = keras.models.Model([tokens, places], x)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    draw = numpy.random.RandomState(1)
    texts = draw.randint(0, VOCABULARY, (batch, length)).astype("int32")
    numbers = numpy.tile(numpy.arange(length, dtype="int32"), (batch, 1))
    return training.fit(model, [texts, numbers], draw.randint(0, CLASSES, (batch, 1)).astype("int32"))
