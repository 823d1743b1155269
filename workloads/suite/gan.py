"""One step of a generative adversarial network, in a custom loop: two gradient tapes in a tf.function.

cpu  images of 28x28 in batches of 32
gpu  the same with eight times the filters, in batches of 256

Its items are images. The noise is the same in each step and version.
"""

import numpy

from workloads import compat, training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are images in a batch, and filters of the widest layer.
SIZES = {"cpu": (32, 32), "gpu": (256, 256)}
NOISE, SIDE = 64, 28


def refuse(tf, params):
    return training.size_refusal(tf, params)


def build(tf, params):
    compat.use_mode(tf, "eager")
    keras, (batch, filters) = tf.keras, SIZES[params["size"]]
    generator, discriminator = make_generator(keras, filters), make_discriminator(keras, filters)
    for number, model in enumerate((generator, discriminator)):
        compat.fix_weights(model, number)
    optimizers = [compat.adam(keras, 1e-4, "eager") for _ in range(2)]
    draw = numpy.random.RandomState(1)
    noise = tf.constant(draw.randn(batch, NOISE).astype("float32"))
    images = tf.constant(draw.rand(batch, SIDE, SIDE, 1).astype("float32"))

    def is_real(logits, real):
        labels = tf.ones_like(logits) if real else tf.zeros_like(logits)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    def train():
        with tf.GradientTape() as making, tf.GradientTape() as telling:
            made = generator(noise, training=True)
            of_made, of_real = discriminator(made, training=True), discriminator(images, training=True)
            made_loss = is_real(of_made, True)
            told_loss = is_real(of_real, True) + is_real(of_made, False)
        for tape, loss, model, optimizer in (
            (making, made_loss, generator, optimizers[0]),
            (telling, told_loss, discriminator, optimizers[1]),
        ):
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return made_loss, told_loss

    step = compat.function(tf, train)

    def measured():
        return step()

    measured.items = batch
    return measured


def make_generator(keras, filters):
    layers = keras.layers
    inputs = layers.Input(shape=(NOISE,))
    x = layers.Dense(7 * 7 * filters, activation="relu")(inputs)
    x = layers.Reshape((7, 7, filters))(x)
    for count in (filters, filters // 2):
        x = layers.Conv2DTranspose(count, 4, strides=2, padding="same", activation="relu")(x)
    return keras.models.Model(inputs, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(x))


def make_discriminator(keras, filters):
    layers = keras.layers
    inputs = layers.Input(shape=(SIDE, SIDE, 1))
    x = inputs
    for count in (filters // 2, filters):
        x = layers.Conv2D(count, 4, strides=2, padding="same", activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(1)(layers.Flatten()(x)))
