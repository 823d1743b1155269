"""One epoch of `fit` of the example benchmarks of Keras 2.8, which are not changed, on synthetic data.

The folder `fetched` next to this file holds them. What each would measure is asked of it: its call of
`measure_performance` is kept instead of made.

antirectifier, bidirectional_lstm, mnist_conv, mnist_hierarchical_rnn, mnist_irnn, reuters_mlp, transformer
                the first benchmark of each file of keras_examples_benchmarks
cpu_convnet     the net of convolutions of keras_cpu_benchmark_test
"""

import contextlib
import importlib.util
import os
import sys
import types

import numpy as np

# The file without its ending, the benchmark in it if not the first, and the rows of an epoch.
EXAMPLES = {
    "antirectifier": ("antirectifier", "", 1280),
    "bidirectional_lstm": ("bidirectional_lstm", "", 128),
    "mnist_conv": ("mnist_conv", "", 512),
    "mnist_hierarchical_rnn": ("mnist_hierarchical_rnn", "", 256),
    "mnist_irnn": ("mnist_irnn", "", 256),
    "reuters_mlp": ("reuters_mlp", "", 2560),
    "transformer": ("text_classification_transformer", "", 256),
    "cpu_convnet": ("keras_cpu", "benchmark_mnist_convnet", 160),
}
PARAMS = {
    "example": (
        "antirectifier", "bidirectional_lstm", "mnist_conv", "mnist_hierarchical_rnn", "mnist_irnn", "reuters_mlp",
        "transformer", "cpu_convnet",
    ),
}  # fmt: skip
ROWS = 2600


class _Measured(Exception):
    """What a benchmark asked to have measured is known."""


def build(tf, params):
    tf.random.set_seed(1)
    name, method, rows = EXAMPLES[params["example"]]
    asked = _ask(tf, name, method, np.random.RandomState(1))
    model = asked["model"]()
    model.compile(optimizer=asked["optimizer"], loss=asked["loss"], metrics=asked.get("metrics"))
    x, y = asked["x"][:rows], asked["y"][:rows]
    return lambda: model.fit(x, y, batch_size=asked["batch_size"], epochs=1, verbose=0).history["loss"][0]


def _ask(tf, name, method, draw):
    """What a benchmark hands to `measure_performance`."""
    _replace_data(tf.keras.datasets, draw)
    asked = {}

    def measure_performance(model_fn, **given):
        asked.update(given, model=model_fn)
        raise _Measured

    with _replaced_package(measure_performance):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fetched", name + "_benchmark_test.py")
        spec = importlib.util.spec_from_file_location("fetched_" + name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, tf.test.Benchmark)]
    benchmark = kinds[0]()
    first = next(key for key in vars(kinds[0]) if key.startswith(method or "benchmark_"))
    with contextlib.suppress(_Measured):
        getattr(benchmark, first)()
    return asked


@contextlib.contextmanager
def _replaced_package(measure_performance):
    """Put one function that measures nothing in place of `keras.benchmarks`, for as long as a benchmark is imported.

    `keras` stays the installed one, because `tf.keras` asks it while it loads.
    """
    util = types.ModuleType("keras.benchmarks.benchmark_util")
    util.measure_performance = measure_performance
    benchmarks = types.ModuleType("keras.benchmarks")
    benchmarks.benchmark_util = util
    replaced = {"keras.benchmarks": benchmarks, util.__name__: util}
    before = {name: sys.modules.get(name) for name in replaced}
    sys.modules.update(replaced)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _replace_data(datasets, draw):
    def load_images(*shape):
        return lambda: ((draw.randint(0, 255, (ROWS,) + shape).astype("uint8"), draw.randint(0, 10, ROWS)), None)

    def load_texts(classes):
        def load(num_words):
            texts = np.empty(ROWS, dtype=object)
            texts[:] = [list(map(int, draw.randint(1, num_words, 120))) for _ in range(ROWS)]
            return (texts, draw.randint(0, classes, ROWS)), None

        return load

    datasets.mnist.load_data = load_images(28, 28)
    datasets.imdb.load_data, datasets.reuters.load_data = load_texts(2), load_texts(46)
