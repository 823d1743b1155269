"""The built-in set of models, each as small as it can be and still show how its kind is saved.

Every model has `build(tf)`, `inputs(tf)`, `custom_objects(tf)` and, if it is compiled, `targets(tf)`; a user's own file
has the same functions, of which only `build` is needed. Some shapes come from reports about models that did not load:
two layers of one type (keras#18830), a model inside a Sequential (keras#19959), a bidirectional LSTM (keras#18913),
lookups that were adapted (tf-keras#369), a registered loss (keras#20806).
"""

from functools import lru_cache

import numpy

from workloads import compat

ROWS, WIDTH, STEPS = 4, 3, 6


def draw(shape, seed):
    return numpy.random.RandomState(seed).normal(size=shape).astype("float32")


class Model:
    """A model whose methods a kind overrides."""

    def inputs(self, tf):
        return draw((ROWS, WIDTH), 1)

    def custom_objects(self, tf):
        return {}

    def targets(self, tf):
        """Return what the model is trained to, or None if it is not compiled."""
        return

    def compile(self, tf, model, loss="mse"):
        adam = compat.adam(tf.keras, 0.05, compat.EAGER)
        model.compile(optimizer=adam, loss=loss, **compat.compile_jit(model, False))
        return model


class Functional(Model):
    def build(self, tf):
        layers = tf.keras.layers
        given = tf.keras.Input((WIDTH,))
        inner = layers.Dense(5, activation="relu")(given)
        inner = layers.BatchNormalization()(layers.Dense(5, activation="relu")(inner))
        return tf.keras.Model(given, layers.Dense(2)(layers.Concatenate()([given, inner])))


class Sequential(Model):
    """A Sequential that learns its shapes from the first data."""

    def build(self, tf):
        layers = tf.keras.layers
        return tf.keras.Sequential([layers.Dense(5, activation="relu"), layers.Dropout(0.2), layers.Dense(2)])


class Subclassed(Model):
    def custom_objects(self, tf):
        class Net(tf.keras.Model):
            def __init__(self, units=5, **more):
                super().__init__(**more)
                self.units = units
                self.inner = tf.keras.layers.Dense(units, activation="relu")
                self.outer = tf.keras.layers.Dense(2)

            def call(self, values):
                return self.outer(self.inner(values))

            def get_config(self):
                return {"units": self.units}

            @classmethod
            def from_config(cls, config, custom_objects=None):
                return cls(**config)

        return {"Net": Net}

    def build(self, tf):
        return self.custom_objects(tf)["Net"]()


class Nested(Model):
    """A Sequential with a model inside, as in transfer learning."""

    def build(self, tf):
        layers = tf.keras.layers
        given = tf.keras.Input((WIDTH,))
        inner = layers.Dense(WIDTH)(given)
        base = tf.keras.Model(given, layers.Add()([given, layers.BatchNormalization()(inner)]), name="base")
        base.trainable = False
        whole = [tf.keras.Input((WIDTH,)), layers.Dense(WIDTH), base, layers.Dense(5), layers.Dropout(0.2), layers.Dense(2)]
        if not compat.keras_is_3(tf):
            whole[0] = layers.InputLayer((WIDTH,))
        return tf.keras.Sequential(whole)


class CustomLayer(Model):
    def custom_objects(self, tf):
        class Scale(tf.keras.layers.Layer):
            def __init__(self, factor=2.0, **more):
                super().__init__(**more)
                self.factor = factor

            def build(self, shape):
                self.matrix = self.add_weight(name="matrix", shape=(int(shape[-1]), 2))
                super().build(shape)

            def call(self, values):
                return tf.matmul(values, self.matrix) * self.factor

            def get_config(self):
                return dict(super().get_config(), factor=self.factor)

        return {"Scale": Scale}

    def build(self, tf):
        given = tf.keras.Input((WIDTH,))
        scale = self.custom_objects(tf)["Scale"]
        return tf.keras.Model(given, scale(factor=3.0)(tf.keras.layers.Dense(5)(given)))


class CustomLoss(Model):
    def targets(self, tf):
        return draw((ROWS, 2), 2)

    def custom_objects(self, tf):
        class Weighted(tf.keras.losses.Loss):
            def __init__(self, weight=2.0, reduction="sum_over_batch_size", name="weighted"):
                super().__init__(reduction=reduction, name=name)
                self.weight = weight

            def call(self, wanted, given):
                return self.weight * tf.reduce_mean(tf.square(wanted - given), axis=-1)

            def get_config(self):
                return dict(super().get_config(), weight=self.weight)

        return {"Weighted": Weighted}

    def build(self, tf):
        given = tf.keras.Input((WIDTH,))
        model = tf.keras.Model(given, tf.keras.layers.Dense(2)(given))
        return self.compile(tf, model, self.custom_objects(tf)["Weighted"](weight=3.0))


class RegisteredLoss(Model):
    """A loss that Keras finds by the name under which it is registered, as each program that loads it registers it."""

    def targets(self, tf):
        return draw((ROWS, 2), 2)

    def custom_objects(self, tf):
        self._register(tf)
        return {}

    @lru_cache(maxsize=None)  # noqa: B019 - Keras 2.8 registers a name only once, and there is one such object
    def _register(self, tf):
        @tf.keras.utils.register_keras_serializable(package="tfcompare")
        def tripled(wanted, given):
            return 3.0 * tf.reduce_mean(tf.square(wanted - given), axis=-1)

        return tripled

    def build(self, tf):
        given = tf.keras.Input((WIDTH,))
        return self.compile(tf, tf.keras.Model(given, tf.keras.layers.Dense(2)(given)), self._register(tf))


class Preprocessing(Model):
    """Layers that learn a vocabulary and a scale from data, as tables of different columns need them."""

    def inputs(self, tf):
        return {
            "colour": numpy.array([["red"], ["blue"], ["red"], ["none"]]),
            "count": numpy.array([[1], [2], [7], [2]]),
            "size": draw((ROWS, WIDTH), 1),
        }

    def build(self, tf):
        layers = tf.keras.layers
        if not hasattr(layers, "StringLookup"):
            raise compat.Refused("Keras has no layer StringLookup before TensorFlow 2.6.")
        data = self.inputs(tf)
        lookup, numbers = self._make_lookup(layers.StringLookup), self._make_lookup(layers.IntegerLookup)
        scale = layers.Normalization()
        lookup.adapt(data["colour"])
        numbers.adapt(data["count"])
        scale.adapt(data["size"])
        given = {
            "colour": tf.keras.Input((1,), name="colour", dtype="string"),
            "count": tf.keras.Input((1,), name="count", dtype="int64"),
            "size": tf.keras.Input((WIDTH,), name="size"),
        }
        parts = [lookup(given["colour"]), numbers(given["count"]), scale(given["size"])]
        return tf.keras.Model(given, tf.keras.layers.Dense(2)(tf.keras.layers.Concatenate()(parts)))

    def _make_lookup(self, kind):
        # The mode has had two names.
        try:
            return kind(output_mode="multi_hot")
        except ValueError:
            return kind(output_mode="binary")


class Recurrent(Model):
    def inputs(self, tf):
        return numpy.random.RandomState(1).randint(0, 10, (ROWS, STEPS))

    def build(self, tf):
        layers = tf.keras.layers
        given = tf.keras.Input((STEPS,), dtype="int32")
        inner = layers.Bidirectional(layers.LSTM(4))(layers.Embedding(10, 4)(given))
        return tf.keras.Model(given, layers.Dense(2)(inner))


class MixedPrecision(Model):
    def build(self, tf):
        compat.set_precision(tf, "mixed_float16")
        try:
            given = tf.keras.Input((WIDTH,))
            return tf.keras.Model(given, tf.keras.layers.Dense(2)(tf.keras.layers.Dense(5, activation="relu")(given)))
        finally:
            compat.set_precision(tf, "float32")


class OptimizerState(Model):
    """A compiled model after some steps, whose optimizer continues where it was only if its state was saved."""

    def targets(self, tf):
        return draw((ROWS, 2), 2)

    def build(self, tf):
        given = tf.keras.Input((WIDTH,))
        hidden = tf.keras.layers.Dense(5, activation="relu")(given)
        return self.compile(tf, tf.keras.Model(given, tf.keras.layers.Dense(2)(hidden)))


MODELS = {
    "functional": Functional(),
    "sequential": Sequential(),
    "subclassed": Subclassed(),
    "nested": Nested(),
    "custom_layer": CustomLayer(),
    "custom_loss": CustomLoss(),
    "registered_loss": RegisteredLoss(),
    "preprocessing": Preprocessing(),
    "lstm": Recurrent(),
    "mixed_precision": MixedPrecision(),
    "optimizer_state": OptimizerState(),
}
