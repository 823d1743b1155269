"""One training step of a small LeNet: `fit`, or a loop with a GradientTape, eager or in a tf.function.

An epoch of 50 batches of 32 images of 28x28x1, from a tf.data dataset.

fit             model.fit
function        a Python loop over the dataset, whose step is a tf.function
function_whole  a tf.function with the whole loop over the dataset
eager           a Python loop without a tf.function
"""

import numpy

from workloads import compat

PARAMS = {
    "loop": ("fit", "function", "eager", "function_whole"),
}

COMPARISONS = {"loop": "fit"}

# The set-up of `fit` is a small part of this many steps, as of the report's 1875.
STEPS, BATCH = 50, 32


def build(tf, params):
    compat.use_mode(tf, "eager")
    keras = tf.keras
    model = lenet(keras)
    compat.fix_weights(model, 1)
    optimizer = compat.adam(keras, 1e-3, "eager")
    objective = keras.losses.SparseCategoricalCrossentropy()
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    draw = numpy.random.RandomState(1)
    images = draw.rand(STEPS * BATCH, 28, 28, 1).astype("float32")
    labels = draw.randint(0, 10, (STEPS * BATCH, 1)).astype("int32")
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(BATCH)

    def train(x, y):
        with tf.GradientTape() as tape:
            predictions = model(x, training=True)
            loss = objective(y, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        accuracy.update_state(y, predictions)
        return loss

    def epoch():
        total = tf.constant(0.0)
        for x, y in dataset:
            total += train(x, y)
        return total

    if params["loop"] == "fit":
        model.compile(optimizer, loss=objective, metrics=[accuracy])
    elif params["loop"] == "function":
        train = compat.function(tf, train)
    elif params["loop"] == "function_whole":
        epoch = compat.function(tf, epoch)

    def step():
        if params["loop"] == "fit":
            return model.fit(dataset, verbose=0).history["loss"][-1]
        return epoch().numpy()

    step.steps = STEPS
    return step


def lenet(keras):
    layers = keras.layers
    inputs = layers.Input(shape=(28, 28, 1))
    x = layers.Conv2D(6, 3, activation="relu")(inputs)
    x = layers.AveragePooling2D(2)(x)
    x = layers.Conv2D(16, 3, activation="relu")(x)
    x = layers.AveragePooling2D(2)(x)
    x = layers.Flatten()(x)
    x = layers.Dense(120, activation="relu")(x)
    x = layers.Dense(84, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(10, activation="softmax")(x))
