"""A worker whose Keras computes with another backend: what workloads get, and what of TensorFlow is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.worker.client import Burst, Closed, Opened, Refused, WorkerDied
from tests.support.bench import Bench

KERAS = """
import os
import numpy
from types import SimpleNamespace as Namespace

__version__ = "3.15.1"
backend = Namespace(backend=lambda: os.environ.get("COMPUTES_WITH", os.environ["KERAS_BACKEND"]))
seeds = []
utils = Namespace(set_random_seed=seeds.append)


class Background(object):
    \"\"\"An array of JAX: whoever reads it waits for it.\"\"\"

    dtype, shape = "float32", (2,)

    def block_until_ready(self):
        return self

    def __array__(self, dtype=None, copy=None):
        return numpy.ones(2, "float32")
"""
TAKES = """
    def build({first}, params):
        {body}
        return lambda: {result}
    """
# A workload by its name, and what its refusal says or '' if it is measured.
WORKLOADS = {
    "keras": ("keras", "keras.seeds[0] == 1 or 1 / 0", "keras.Background()"),
    "ignores": ("tf", "pass", "1.0"),
    "touches": ("tf", "tf.constant(1)", "1.0"),
    "asks": ("tf", "from workloads import compat; compat.version(tf)", "1.0"),
    "steps": ("tf", "pass", "tf.constant(1)"),
}
SENTENCE = "this target computes with jax, without TensorFlow: a workload for it has build(keras, params)"


def start(folder: Path, own: dict[str, str]) -> Bench:
    bench = Bench(folder, own=own)
    (folder / "stub" / "keras").mkdir()
    (folder / "stub" / "keras" / "__init__.py").write_text(KERAS)
    for name, (first, body, result) in WORKLOADS.items():
        bench.workload(name, TAKES.format(first=first, body=body, result=result))
    return bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = start(tmp_path, {"KERAS_BACKEND": "jax"})
    yield bench
    bench.channel.close()


def test_a_workload_gets_keras_and_its_results_are_read_at_the_end_of_a_call(bench: Bench):
    ready = bench.hello()
    assert ready.facts["backend"] == "jax"
    assert ready.facts["tf_keras"] == "3.15.1"
    assert "tensorflow" not in ready.facts
    number, opened = bench.open("keras")
    assert isinstance(opened, Opened), opened
    assert opened.output == "float32[2]"
    assert isinstance(bench.burst(number), Burst)
    assert bench.close(number) == Closed(rows=7)


@pytest.mark.parametrize(
    ("name", "is_refused"), [("ignores", False), ("touches", True), ("asks", True), ("steps", True)]
)
def test_a_workload_that_touches_tensorflow_is_refused_in_one_sentence(bench: Bench, name: str, is_refused: bool):
    bench.hello()
    _, answer = bench.open(name)
    assert isinstance(answer, Refused if is_refused else Opened), answer
    assert not is_refused or (isinstance(answer, Refused) and answer.reason == SENTENCE)
    bench.measure("ignores")


def test_threads_that_a_backend_cannot_set_are_refused(bench: Bench):
    bench.hello(threads=(1, 1))
    _, answer = bench.open("keras")
    assert isinstance(answer, Refused), answer
    assert answer.reason == "jax has no setting for its threads: leave --threads out"


def test_threads_of_a_backend_that_can_set_them_are_set_and_reported(tmp_path: Path):
    bench = start(tmp_path, {"KERAS_BACKEND": "torch"})
    (tmp_path / "stub" / "torch.py").write_text(
        "counts = {}\n"
        "def set_num_threads(count): counts['intra'] = count\n"
        "def set_num_interop_threads(count): counts['inter'] = count\n"
        "def get_num_threads(): return counts['intra']\n"
        "def get_num_interop_threads(): return counts['inter']\n"
    )
    bench.hello(threads=(1, 2))
    _, answer = bench.open("ignores")
    assert isinstance(answer, Opened), answer
    assert list(answer.threads) == [1, 2]
    bench.channel.close()


def test_a_keras_that_computes_with_something_else_is_no_such_target(tmp_path: Path):
    bench = start(tmp_path, {"KERAS_BACKEND": "jax", "COMPUTES_WITH": "numpy"})
    with pytest.raises(WorkerDied, match="Keras computes with numpy, and not with jax"):
        bench.hello()
    bench.channel.close()


def test_on_tensorflow_a_workload_that_asks_for_keras_gets_that_of_tensorflow(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.hello()
    bench.workload("own", TAKES.format(first="keras", body="assert keras.__version__ == '2.13.0'", result="1.0"))
    bench.measure("own")
    bench.channel.close()
