"""How many operations the oldest and the newest TensorFlow run, counted by real workers and worked out by hand."""

from pathlib import Path

import pytest

from orchestrator.results.run import load_run
from tests.support.end_to_end import Answer, compare

OLD, NEW = "1.14.0", "2.20.0"
WORKLOAD = f'''
"""Runs sines in some ways; `more` are more of them in the newer version."""
import numpy as np

PARAMS = {{"how": ("eager", "function", "nested", "session", "callable"), "sines": ("equal", "more")}}


def build(tf, params):
    from workloads import compat

    how = params["how"]
    compat.use_mode(tf, "graph" if how in ("session", "callable") and compat.version(tf) < (2,) else "eager")
    times = 7 if params["sines"] == "more" and tf.__version__ == "{NEW}" else 5
    values = np.ones((2, 2), "float32")

    def chain(value):
        for _ in range(times):
            value = tf.sin(value)
        return value

    if how in ("session", "callable"):
        with tf.Graph().as_default() as graph:
            fed = tf.compat.v1.placeholder(tf.float32, (2, 2))
            result = chain(fed)
            # No result needs this.
            tf.cos(result)
        session = tf.compat.v1.Session(graph=graph)
        if how == "session":
            return lambda: session.run(result, {{fed: values}})
        run = session.make_callable(result, [fed])
        return lambda: run(values)
    constant = tf.constant(values)
    if how == "eager":
        return lambda: chain(constant)
    function = tf.function(chain)
    if how == "function":
        return lambda: function(constant)
    twice = tf.function(lambda value: function(function(value)))
    return lambda: twice(constant)
'''
# A result of a function passes through an Identity.
EXPECTED = {
    "eager": lambda sines: sines,
    "function": lambda sines: sines + 1,
    "nested": lambda sines: 2 * (1 + sines + 1) + 1,
    "session": lambda sines: sines,
    "callable": lambda sines: sines,
}
KERAS = '''
"""Trains a small net in the usual loop of this TensorFlow."""
import numpy as np


def build(tf, params):
    layers = [tf.keras.layers.Dense(3, activation="relu", input_shape=(4,)), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile(loss="mse", optimizer="sgd")
    inputs, targets = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
    return lambda: model.train_on_batch(inputs, targets)
'''


@pytest.fixture(scope="module")
def done(tfcompare: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Answer, str, Path]:
    folder = tmp_path_factory.mktemp("operations")
    (folder / "own").mkdir()
    (folder / "own" / "sines.py").write_text(WORKLOAD)
    (folder / "own" / "trains.py").write_text(KERAS)
    flags = ("--engine", "venv", "--versions", f"{OLD},{NEW}", "--workload-folder", folder / "own", "--rounds", "2")
    metrics = ("--metric", "calls,ops", "--fail-on", "ops:more>2%", "--output", folder / "run")
    return *compare(tfcompare, *flags, *metrics), folder / "run"


def test_counts_are_those_that_were_worked_out(done: tuple[int, Answer, str, Path]):
    _, _, told, run = done
    rows = load_run(run).to_arrow("replicates").to_pylist()
    # A replicate that makes its first call alone is not counted.
    sines = [row for row in rows if row["workload"] == "sines" and row["operations"] is not None]
    assert len({(row["target"], row["case"]) for row in sines}) == 2 * 10, told
    for row in sines:
        times = 7 if row["param_sines"] == "more" and row["target"] == NEW else 5
        expected = EXPECTED[row["param_how"]](times)
        assert (row["operations"], row["next_operations"]) == (expected, expected), row


def test_more_operations_are_more_and_as_many_are_the_same(done: tuple[int, Answer, str, Path]):
    code, answer, told, _ = done
    assert code == 1, told
    judged = [each for each in answer["metrics"] if each["metric"] == "ops"]
    sines = {(each["params"]["how"], each["params"]["sines"]): each for each in judged if each["workload"] == "sines"}
    assert {key: each["verdict"] for key, each in sines.items()} == {
        (how, more): {"equal": "same", "more": "slower"}[more] for how in EXPECTED for more in ("equal", "more")
    }
    assert sines["nested", "more"]["ratio"] == pytest.approx(19 / 15)
    # Both versions use different Pythons, which matters to the other count only.
    assert {each["verdict"] for each in answer["metrics"] if each["metric"] == "calls"} == {"inconclusive"}


def test_a_model_has_counts_that_agree(done: tuple[int, Answer, str, Path]):
    _, answer, told, run = done
    [found] = [each for each in answer["metrics"] if (each["metric"], each["workload"]) == ("ops", "trains")]
    assert found["verdict"] in ("slower", "faster", "same"), told
    rows = [row for row in load_run(run).to_arrow("replicates").to_pylist() if row["workload"] == "trains"]
    for target in (OLD, NEW):
        own = [row for row in rows if row["target"] == target and row["operations"] is not None]
        counts = {row[name] for row in own for name in ("operations", "next_operations")}
        assert len(counts) == 1
        assert min(counts) > 20
