"""Which loops and functions Keras runs inside fit and predict in TensorFlow 2.0: a step checks it.

compile_flag    compile sets _experimental_run_tf_function, which selects another loop and other data for predict
eager_loops     the training loop that Keras selects in eager mode, by flag and kind of input
graph_loops     the same in graph mode
tf_keras_calls  fit and train_on_batch of tf.keras run different loops
keras_calls     fit of standalone keras runs fit_loop, and train_on_batch a function that K.function made
conversions     train_on_batch calls functions that convert data more often than a batch has arrays
lstm_share      predict of the net `lstm` of the workload predict spends nearly no time in _process_inputs

The step fails where one of these is not so. Its time is that of the checks.
"""

import collections
import os
import sys
import time

import numpy

from workloads import compat
from workloads.suite import predict

PARAMS = {
    "which": (
        "compile_flag",
        "eager_loops",
        "graph_loops",
        "tf_keras_calls",
        "keras_calls",
        "conversions",
        "lstm_share",
    ),
}

FLAG = "_experimental_run_tf_function"
SHAPE = (32, 10)
# A batch is x and y.
ARRAYS = 2
LSTM_SHARE = 0.01


def refuse(tf, params):
    if not hasattr(tf.keras.Model, "_select_training_loop"):
        return "This Keras has no _select_training_loop."
    if params["which"] == "keras_calls":
        return compat.keras_refusal(tf, "keras", "eager")
    return None


def build(tf, params):
    compat.use_mode(tf, "graph" if params["which"] == "graph_loops" else "eager")
    step = CHECKS[params["which"]](tf)
    step.no_result = "a call checks statements, and fails if one does not hold"
    return step


def compile_flag(tf):
    x, _ = rows()
    plain, compiled = net(tf.keras), compiled_net(tf.keras)
    for model in (plain, compiled):
        model.predict(x)

    def step():
        check(getattr(plain, FLAG) is False, "the flag is off before compile")
        check(getattr(compiled, FLAG) is True, "compile sets the flag")
        check(loop_of(plain, x) == "training_arrays.ArrayLikeTrainingLoop", "without the flag, arrays have their loop")
        check(loop_of(compiled, x) == "training_v2.Loop", "with the flag, predict has the loop of training_v2")
        before, after = Watch(lambda: plain.predict(x)), Watch(lambda: compiled.predict(x))
        for name in ("training_v2._process_inputs", "function._create_graph_function"):
            check(not before.calls[name], f"an uncompiled model's predict does not call {name}")
            check(after.calls[name], f"a compiled model's predict calls {name}")
        adapters = {type(result).__name__ for result in after.results["training_v2._process_inputs"]}
        check(adapters == {"TensorLikeDataAdapter"}, "_process_inputs returns a TensorLikeDataAdapter")
        arrays = before.results["training_utils.convert_eager_tensors_to_numpy"]
        check(has_array(arrays), "convert_eager_tensors_to_numpy returns numpy arrays")

    return step


def eager_loops(tf):
    x, y = rows()
    dataset = tf.data.Dataset.from_tensors((x, y))
    flagged = compiled_net(tf.keras)
    plain = compiled_net(tf.keras, experimental_run_tf_function=False)
    eager = compiled_net(tf.keras, experimental_run_tf_function=False, run_eagerly=True)
    expected = (
        (flagged, x, "training_v2.Loop"),
        (plain, x, "training_arrays.ArrayLikeTrainingLoop"),
        (plain, iter_rows(), "training_generator.GeneratorOrSequenceTrainingLoop"),
        (plain, dataset, "training_generator.EagerDatasetOrIteratorTrainingLoop"),
        (eager, x, "training_generator.GeneratorLikeTrainingLoop"),
    )
    return lambda: check_loops(expected)


def graph_loops(tf):
    x, y = rows()
    model = compiled_net(tf.keras)
    expected = (
        (model, x, "training_arrays.ArrayLikeTrainingLoop"),
        (model, tf.data.Dataset.from_tensors((x, y)), "training_arrays.ArrayLikeTrainingLoop"),
        (model, iter_rows(), "training_generator.GeneratorOrSequenceTrainingLoop"),
    )
    return lambda: check_loops(expected)


def tf_keras_calls(tf):
    fit, train_on_batch = calls_of(compiled_net(tf.keras))

    def step():
        one, other = Watch(fit).calls, Watch(train_on_batch).calls
        check(one["training_v2.run_one_epoch"], "fit of tf.keras runs the loop of training_v2")
        check(not other["training_v2.run_one_epoch"], "train_on_batch of tf.keras does not")
        check(other["training_v2_utils.train_on_batch"], "train_on_batch of tf.keras has its own function")
        check(not one["training_arrays.fit_loop"] and not other["training_arrays.fit_loop"], "neither runs fit_loop")

    return step


def keras_calls(tf):
    fit, train_on_batch = calls_of(compiled_net(compat.keras(tf, "keras")))

    def step():
        one, other = Watch(fit).calls, Watch(train_on_batch).calls
        check(one["training_arrays.fit_loop"], "fit of keras runs fit_loop")
        check(not other["training_arrays.fit_loop"], "train_on_batch of keras does not")
        check(other["backend.__call__"], "train_on_batch of keras calls what K.function made")

    return step


def conversions(tf):
    _, train_on_batch = calls_of(compiled_net(tf.keras))

    def step():
        calls = Watch(train_on_batch).calls
        for name in ("ops.convert_to_tensor", "math_ops.cast"):
            statement = "a batch of {} arrays makes Keras call {} more often than that, not {} times"
            check(calls[name] > ARRAYS, statement.format(ARRAYS, name, calls[name]))

    return step


def lstm_share(tf):
    call = predict.build(tf, {"call": "predict", "state": "compiled", "model": "lstm"})

    # A profiler would slow this function down more than the rest.
    from tensorflow.python.keras.engine import training_v2

    process, seconds = training_v2._process_inputs, []

    def timed(*args, **kwargs):
        start = time.perf_counter()
        try:
            return process(*args, **kwargs)
        finally:
            seconds.append(time.perf_counter() - start)

    training_v2._process_inputs = timed
    call()

    def step():
        del seconds[:]
        start = time.perf_counter()
        call()
        share = sum(seconds) / (time.perf_counter() - start)
        check(seconds, "predict calls _process_inputs")
        check(share < LSTM_SHARE, f"_process_inputs takes less than {LSTM_SHARE:.0%}, not {share:.1%}")

    return step


class Watch:
    """The Python functions that run in one call, as module.function: how often, and what they return."""

    def __init__(self, call):
        self.calls = collections.Counter()
        self.results = collections.defaultdict(list)
        sys.setprofile(self._see)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _see(self, frame, event, arg):
        if event == "return":
            module = os.path.splitext(os.path.basename(frame.f_code.co_filename))[0]
            name = f"{module}.{frame.f_code.co_name}"
            self.calls[name] += 1
            if name in KEPT:
                self.results[name].append(arg)


KEPT = ("training_v2._process_inputs", "training_utils.convert_eager_tensors_to_numpy")


def net(keras):
    inputs = keras.layers.Input(shape=SHAPE[1:])
    return keras.models.Model(inputs, keras.layers.Dense(1)(inputs))


def compiled_net(keras, **options):
    model = net(keras)
    model.compile("adam", loss="mse", **options)
    return model


def rows():
    draw = numpy.random.RandomState(1)
    return draw.randn(*SHAPE).astype("float32"), draw.randn(SHAPE[0], 1).astype("float32")


def iter_rows():
    yield rows()


def calls_of(model):
    """Return one call of fit and one of train_on_batch, both after the calls that build."""
    x, y = rows()
    calls = (lambda: model.fit(x, y, verbose=0)), (lambda: model.train_on_batch(x, y))
    for call in calls:
        call()
    return calls


def loop_of(model, x):
    loop = type(model._select_training_loop(x))
    return "{}.{}".format(loop.__module__.rpartition(".")[2], loop.__name__)


def check_loops(expected):
    for model, x, name in expected:
        selected = loop_of(model, x)
        check(selected == name, f"the loop for {type(x).__name__} is {name}, not {selected}")


def has_array(value):
    if isinstance(value, (list, tuple)):
        return any(map(has_array, value))
    return isinstance(value, numpy.ndarray)


def check(holds, statement):
    if not holds:
        raise AssertionError(f"not so in this TensorFlow: {statement}")


CHECKS = {
    "compile_flag": compile_flag,
    "eager_loops": eager_loops,
    "graph_loops": graph_loops,
    "tf_keras_calls": tf_keras_calls,
    "keras_calls": keras_calls,
    "conversions": conversions,
    "lstm_share": lstm_share,
}
