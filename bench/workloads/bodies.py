"""Code of the kinds that users bring: eager operations, Keras layers, training steps and input pipelines.

matmul          a hundred eager products of 2x2
layers          an eager call of a functional model of five dense layers
antirectifier   `fit` of a net with a layer that its user wrote
autoencoder     `fit` of a variational autoencoder with its own `train_step`
attention       `train_on_batch` of a text classifier with attention
lstm            `train_on_batch` of a text classifier with an LSTM
chain           a dataset of 200 elements through a chain of 50 maps
generator       a dataset of 300 elements from a generator
"""

import numpy as np

PARAMS = {
    "which": ("matmul", "layers", "antirectifier", "autoencoder", "attention", "lstm", "chain", "generator"),
}
WORDS, LENGTH, BATCH = 2000, 80, 32


def build(tf, params):
    tf.random.set_seed(1)
    return globals()["_" + params["which"]](tf, np.random.RandomState(1))


def _matmul(tf, draw):
    left = tf.constant(draw.randn(2, 2).astype("float32"))

    def step():
        found = left
        for _ in range(100):
            found = tf.matmul(left, left)
        return found

    return step


def _layers(tf, draw):
    given = tf.keras.Input(shape=(10,))
    inner = given
    for _ in range(5):
        inner = tf.keras.layers.Dense(10, activation="relu")(inner)
    model, batch = tf.keras.Model(given, inner), tf.constant(draw.randn(BATCH, 10).astype("float32"))
    return lambda: model(batch)


def _antirectifier(tf, draw):
    class Antirectifier(tf.keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(2 * shape[-1], 32), initializer="he_normal", name="scale")

        def call(self, inputs):
            centred = inputs - tf.reduce_mean(inputs, axis=-1, keepdims=True)
            both = tf.concat([tf.nn.relu(centred), tf.nn.relu(-centred)], axis=-1)
            return tf.matmul(both, self.scale)

    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input(shape=(128,)), layers.Dense(64), Antirectifier(), layers.Dense(10)])
    model.compile(optimizer="rmsprop", loss="mse")
    rows, targets = draw.randn(512, 128).astype("float32"), draw.randn(512, 10).astype("float32")

    def step():
        return model.fit(rows, targets, batch_size=128, verbose=0).history["loss"][-1]

    step.steps = 4
    return step


def _autoencoder(tf, draw):
    layers = tf.keras.layers

    class Autoencoder(tf.keras.Model):
        def __init__(self):
            super().__init__()
            narrowing = layers.Conv2D(8, 3, 2, "same", activation="relu")
            self.encoder = tf.keras.Sequential([narrowing, layers.Flatten(), layers.Dense(8)])
            spread = [layers.Dense(14 * 14 * 4, activation="relu"), layers.Reshape((14, 14, 4))]
            self.decoder = tf.keras.Sequential([*spread, layers.Conv2DTranspose(1, 3, 2, "same")])

        def call(self, images):
            return self.decoder(self.encoder(images)[:, :4])

        def train_step(self, images):
            if isinstance(images, tuple):
                images = images[0]
            with tf.GradientTape() as tape:
                mean, spread = tf.split(self.encoder(images), 2, axis=1)
                drawn = mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean))
                lost = tf.reduce_mean(tf.square(images - self.decoder(drawn)))
                loss = lost - 0.5 * tf.reduce_mean(1 + spread - tf.square(mean) - tf.exp(spread))
            weights = self.trainable_weights
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return {"loss": loss}

    model, images = Autoencoder(), draw.rand(64, 28, 28, 1).astype("float32")
    model.compile(optimizer="adam")

    def step():
        return model.fit(images, batch_size=BATCH, verbose=0).history["loss"][-1]

    step.steps = 2
    return step


def _attention(tf, draw):
    layers = tf.keras.layers
    words = tf.keras.Input(shape=(LENGTH,))
    embedded = layers.Embedding(WORDS, 32)(words)
    seen = layers.LayerNormalization()(embedded + layers.MultiHeadAttention(2, 16)(embedded, embedded))
    answer = layers.Dense(1, activation="sigmoid")(layers.GlobalAveragePooling1D()(seen))
    return _train_on_text(tf.keras.Model(words, answer), draw)


def _lstm(tf, draw):
    layers = tf.keras.layers
    parts = [tf.keras.Input(shape=(LENGTH,)), layers.Embedding(WORDS, 32), layers.LSTM(32)]
    parts.append(layers.Dense(1, activation="sigmoid"))
    return _train_on_text(tf.keras.Sequential(parts), draw)


def _train_on_text(model, draw):
    model.compile(optimizer="adam", loss="binary_crossentropy")
    texts, answers = draw.randint(0, WORDS, (BATCH, LENGTH)), draw.randint(0, 2, (BATCH, 1))
    return lambda: model.train_on_batch(texts, answers)


def _chain(tf, draw):
    numbers = tf.data.Dataset.range(200)
    for _ in range(50):
        numbers = numbers.map(lambda number: number + 1)
    return lambda: sum(1 for _ in numbers)


def _generator(tf, draw):
    rows = draw.randn(300, 8).astype("float32")
    numbers = tf.data.Dataset.from_generator(lambda: iter(rows), output_types=tf.float32, output_shapes=(8,))
    return lambda: sum(1 for _ in numbers)
