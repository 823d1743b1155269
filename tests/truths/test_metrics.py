"""Runs in which the truth about each metric is known: the versions differ in it, and then they do not.

The real command and real workers measure; TensorFlow is the stub.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.metrics import NAMES
from tests.support import keras, libcuda, other_results
from tests.support.truths import GPU_LINE, Stage, measure_twice

pytestmark = pytest.mark.slow

WORKLOADS = {
    "time": """
        def build(tf, params):
            return lambda: time.sleep(0.006 if NEWER else 0.002)
        """,
    "first": """
        def build(tf, params):
            calls = []
            def step():
                calls.append(1)
                time.sleep(0.3 if NEWER and len(calls) == 1 else 0.1 if len(calls) == 1 else 0.002)
            return step
        """,
    "build": """
        def build(tf, params):
            time.sleep(0.3 if NEWER else 0.1)
            return lambda: time.sleep(0.002)
        """,
    "cpu": """
        def build(tf, params):
            def step():
                until = time.process_time() + (0.006 if NEWER else 0.001)
                while time.process_time() < until:
                    pass
            return step
        """,
    "memory": """
        def build(tf, params):
            held = bytearray((120 if NEWER else 1) << 20)
            return lambda: time.sleep(0.002) or len(held)
        """,
    "leak": """
        def build(tf, params):
            held = []
            def step():
                held.append(bytearray((64 if NEWER else 16) << 10))
                time.sleep(0.001)
            return step
        """,
    "traces": """
        def build(tf, params):
            from tensorflow.python.framework import func_graph
            def step():
                for _ in range(3 if NEWER else 1):
                    func_graph.func_graph_from_py_func("call", step, (), {})
                time.sleep(0.002)
            return step
        """,
    "p50": """
        def build(tf, params):
            return lambda: time.sleep(0.004 if NEWER else 0.001)
        """,
    # One call in eight is ten times as long: 95 of 100 calls hide nothing of it, and the middle one does not show it.
    "p95": """
        def build(tf, params):
            calls = []
            def step():
                calls.append(1)
                time.sleep(0.01 if NEWER and len(calls) % 8 == 0 else 0.001)
            return step
        """,
    # A busy machine delays some calls in a hundred by as much as 50 ms.
    "p99": """
        def build(tf, params):
            calls = []
            def step():
                calls.append(1)
                time.sleep(0.2 if NEWER and len(calls) % 64 == 0 else 0.001)
            return step
        """,
    "output": """
        import numpy
        def build(tf, params):
            return lambda: time.sleep(0.002) or numpy.arange(100.0) + (50 if NEWER else 0)
        """,
}
WORKLOADS |= {
    "traces_per_call": WORKLOADS["traces"],
    "calls": """
        def own():
            return 1

        def build(tf, params):
            return lambda: time.sleep(0.002) or [own() for _ in range(60 if NEWER else 20)]
        """,
    "ops": """
        def build(tf, params):
            return lambda: time.sleep(0.002) or [tf.sin(1.0) for _ in range(60 if NEWER else 20)][0]
        """,
    **dict.fromkeys(("import", "size"), WORKLOADS["build"]),
    "gpu_memory": """
        def build(tf, params):
            os.environ["STUB_GPU_BYTES"] = str((900 if NEWER else 300) << 20)
            return lambda: time.sleep(0.002)
        """,
    # Both take 10 ms, and the newer one takes a quarter more energy meanwhile.
    "energy": """
        def build(tf, params):
            os.environ["STUB_WATTS"] = "250" if NEWER else "200"
            return lambda: time.sleep(0.01)
        """,
    "step": """
        os.environ["STUB_STEP_S"] = "0.03" if NEWER else "0.01"
        from keras import Model
        Model().fit([], 2)
        """,
}
# Each of these gets a separate run: one run of all metrics would be the last test to end, and some metrics need other
# flags or workers.
RUNS = (
    ("time", "first", "build", "cpu"),
    ("memory", "leak", "traces", "traces_per_call", "calls", "ops"),
    ("p50", "p95", "output"),
    ("p99",),
    ("gpu_memory", "energy"),
    ("step",),
    # These two differ outside of workloads.
    ("import", "size"),
)
# Other processes cannot upset these.
UNMOVED = ("memory", "leak", "gpu_memory", "traces", "traces_per_call", "calls", "ops", "size")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, {"STUB_IMPORT_S": "0.6"}, {"STUB_IMPORT_S": "0.1"}, (300, 900))


def measure(
    stage: Stage, metrics: Sequence[str], monkeypatch: pytest.MonkeyPatch, *, differ: bool
) -> dict[str, set[str]]:
    """Return the verdicts about the later version for each metric, from a run with a workload for each of them."""
    flags = ["--rounds", "4", "--metric", ",".join(metrics)]
    own, program = {f"of_{metric}.py": WORKLOADS[metric] for metric in metrics}, ""
    if metrics == ("step",):
        program = "of_step.py"
        own |= keras.SOURCES
        flags = flags[:2]
    if "gpu_memory" in metrics:
        flags += ["--gpus", "0"]
        stage.same = {**stage.same, **show_card(stage.folder, monkeypatch)}
    code, answer, told = stage.measure(own, *flags, differ=differ, program=program)
    assert code == 0, told
    entries = [entry for entry in answer["comparisons"] + answer["metrics"] if entry["kind"] == "target"]
    entries += [{**entry, "metric": "output"} for entry in answer["outputs"]]
    return {
        metric: {
            entry["verdict"]
            for entry in entries
            if entry["metric"] == metric and (program or entry["workload"] in (f"of_{metric}", None))
        }
        for metric in metrics
    }


def measure_until_right(
    stage: Stage, right: Mapping[str, set[str]], monkeypatch: pytest.MonkeyPatch, *, differ: bool
) -> dict[str, set[str]]:
    """Return the verdicts of each metric; those that are not right are measured a second time."""
    found = measure(stage, tuple(right), monkeypatch, differ=differ)
    wrong = tuple(metric for metric, verdicts in found.items() if not verdicts or not verdicts <= right[metric])
    again = replace(stage, folder=stage.folder / "again")
    return {**found, **(measure(again, wrong, monkeypatch, differ=differ) if wrong else {})}


def show_card(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Show one GPU on this machine, and return the variables with which workers see it."""
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{GPU_LINE}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return {"STUB_GPUS": "1", "STUB_CUDA_DEVICES": "1", "LD_LIBRARY_PATH": str(libcuda.build(folder / "cuda"))}


@pytest.mark.parametrize("metrics", RUNS, ids=lambda metrics: metrics[0])
def test_a_version_that_is_worse_is_called_worse(
    stage: Stage, metrics: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = {metric: {"differs" if metric == "output" else "slower"} for metric in metrics}
    assert measure_until_right(stage, right, monkeypatch, differ=True) == right


@pytest.mark.parametrize("metrics", RUNS, ids=lambda metrics: metrics[0])
def test_equal_versions_are_never_called_different(
    stage: Stage, metrics: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = {"same", "inconclusive"}
    right = {
        metric: {"equal"} if metric == "output" else {"same"} if metric in UNMOVED else usual for metric in metrics
    }
    found = measure_until_right(stage, right, monkeypatch, differ=False)
    assert all(found.values())
    assert all(verdicts <= right[metric] for metric, verdicts in found.items()), found


def test_every_metric_is_measured_once() -> None:
    assert sorted(metric for metrics in RUNS for metric in metrics) == sorted((*NAMES, "step"))


def test_slow_calls_are_in_the_tail_and_not_in_the_middle(stage: Stage) -> None:
    def measure_middle(stage: Stage) -> set[str]:
        flags = ("--rounds", "6", "--metric", "p50,p95")
        code, answer, told = stage.measure({"tail.py": WORKLOADS["p95"]}, *flags, differ=True)
        assert code == 0, told
        verdicts = {entry["metric"]: entry["verdict"] for entry in answer["metrics"]}
        assert verdicts["p95"] == "slower"
        return {verdicts["p50"]}

    right = {"same", "inconclusive"}
    assert measure_twice(stage, right, measure_middle) <= right


def test_results_that_differ_outside_of_a_sample_of_the_first_call_differ(stage: Stage) -> None:
    head = "import numpy\n\ndef build(tf, params):\n    new, draw = NEWER, numpy.random.RandomState(0)\n"
    own = {f"{name}.py": other_results.write(head, name) for name in other_results.BODIES}
    for differ, expected in ((True, "differs"), (False, "equal")):
        code, answer, told = stage.measure(own, "--rounds", "4", "--metric", "output", differ=differ)
        assert code == 0, told
        verdicts = {entry["workload"]: entry["verdict"] for entry in answer["outputs"]}
        assert verdicts == {
            name: "not comparable" if name in other_results.WITHOUT_VALUE else expected for name in other_results.BODIES
        }
        calls = {entry["workload"]: entry["call"] for entry in answer["outputs"]}
        assert [name for name in calls if calls[name] == "fifth"] == (list(other_results.FIFTH) if differ else [])


# Its first calls scatter by a tenth, whatever the seeds of a round are, and later calls are equal.
FIRST = """
    import math, random
    def build(tf, params):
        calls = []
        def step():
            calls.append(1)
            first = 0.3 * (2.5 if NEWER else 1) * math.exp(random.SystemRandom().gauss(0, 0.1))
            time.sleep(first if len(calls) == 1 else 0.02)
        return step
"""


@pytest.mark.parametrize("differ", [True, False])
def test_four_rounds_find_a_first_call_that_takes_much_longer(stage: Stage, differ: bool) -> None:
    def measure_first(stage: Stage) -> set[str]:
        code, answer, told = stage.measure({"opened.py": FIRST}, "--rounds", "4", differ=differ)
        assert code == 0, told
        (first,) = [entry for entry in answer["metrics"] if entry["metric"] == "first"]
        assert first["rounds"] == 4
        return {first["verdict"]}

    right = {"slower"} if differ else {"same", "inconclusive"}
    assert measure_twice(stage, right, measure_first) <= right
    path = stage.folder / ("different" if differ else "equal") / "run" / "journal.jsonl"
    journal = map(json.loads, path.read_text().splitlines())
    ended = [entry for entry in journal if entry["kind"] == "ended" and entry.get("once")]
    rounds = [
        Counter(entry["round"] for entry in ended if entry["target"] == version) for version in ("1.14.0", "2.0.0")
    ]
    # As many in both versions, whatever they took; a round has none if the machine leaves no time for them.
    assert rounds[0] == rounds[1]
    assert sum(rounds, Counter()).total() == len(ended)
