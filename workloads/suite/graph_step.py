"""One training step of a small convolutional net on numpy arrays, in a graph or eagerly.

graph  a session in TensorFlow 1, a tf.function from 2.0 on
eager  a GradientTape without a tf.function

A step takes a batch of 32 images of 28x28x1 as arrays and returns the loss as a number.
"""

import numpy

from workloads import compat

PARAMS = {
    "mode": ("graph", "eager"),
}

COMPARISONS = {"mode": "graph"}

STEPS, BATCH = 20, 32


def build(tf, params):
    if params["mode"] == "eager":
        compat.use_mode(tf, "eager")
    draw = numpy.random.RandomState(1)
    images = draw.rand(STEPS, BATCH, 28, 28, 1).astype("float32")
    labels = draw.randint(0, 10, (STEPS, BATCH, 1)).astype("int32")
    # Only TensorFlow 1 starts in graph mode.
    train = tape_step(tf, params["mode"] == "graph") if tf.executing_eagerly() else session_step(tf)

    def step():
        return sum(train(x, y) for x, y in zip(images, labels))

    step.steps = STEPS
    return step


def tape_step(tf, in_function):
    model = convolutional(tf.keras)
    compat.fix_weights(model, 1)
    optimizer = compat.adam(tf.keras, 1e-3, "eager")
    objective = tf.keras.losses.SparseCategoricalCrossentropy()

    def train(x, y):
        y = tf.convert_to_tensor(y)
        with tf.GradientTape() as tape:
            loss = objective(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    if in_function:
        train = compat.function(tf, train)
    return lambda x, y: train(x, y).numpy()


def session_step(tf):
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, (BATCH, 28, 28, 1))
    y = v1.placeholder(tf.int32, (BATCH, 1))
    model = convolutional(tf.keras)
    loss = tf.keras.losses.SparseCategoricalCrossentropy()(y, model(x))
    train = compat.adam(tf.keras, 1e-3, "graph").get_updates(loss, model.trainable_weights)
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    tf.keras.backend.set_session(session)
    compat.fix_weights(model, 1)
    return lambda images, labels: session.run([loss, train], {x: images, y: labels})[0]


def convolutional(keras):
    layers = keras.layers
    inputs = layers.Input(shape=(28, 28, 1))
    x = layers.MaxPooling2D()(layers.Conv2D(16, 3, activation="relu")(inputs))
    x = layers.Dense(64, activation="relu")(layers.Flatten()(x))
    return keras.models.Model(inputs, layers.Dense(10, activation="softmax")(x))
