"""Counts of Python calls have the verdict of the truth, also next to processes that compute without end.

The real command and real workers measure; TensorFlow is the stub.
"""

import os
from pathlib import Path

import pytest

from tests.support.processes import start_neighbours
from tests.support.truths import Stage

pytestmark = pytest.mark.slow

HEAD = """
    import random

    def own():
        return 1

    def build(tf, params):
        calls = []
        def step():
            for _ in range({}):
                own()
            calls.append(1)
        return step
"""
# How many functions a call runs, and the verdict on the newer version.
BODIES = {
    "equal": ("1000", "same"),
    "slightly_more": ("1008 if NEWER else 1000", "same"),
    "more": ("1050 if NEWER else 1000", "slower"),
    "fewer": ("950 if NEWER else 1000", "faster"),
    "varies": ("random.randint(1000, 1100)", "inconclusive"),
    "grows": ("1000 + 10 * len(calls)", "inconclusive"),
}
FLAGS = ("--rounds", "4", "--metric", "time,calls", "--fail-on", "calls:more>2%")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, {}, {})


def workloads(*names: str) -> dict[str, str]:
    return {f"{name}.py": HEAD.format(BODIES[name][0]) for name in names}


def test_verdicts_on_counts_are_those_of_the_truth_on_a_busy_machine(stage: Stage):
    with start_neighbours(len(os.sched_getaffinity(0))):
        code, answer, told = stage.measure(workloads(*BODIES), *FLAGS, differ=True)
    assert code == 1, told
    assert "1 calls:more>2%" in told
    found = {each["workload"]: each for each in answer["metrics"] if each["metric"] == "calls"}
    assert {name: found[name]["verdict"] for name in BODIES} == {name: truth for name, (_, truth) in BODIES.items()}
    assert found["more"]["ratio"] == pytest.approx(1051 / 1001)
    assert found["slightly_more"]["size"] == "slight"
    # By chance, each of a few calls may run more than the one before.
    assert found["varies"]["reason"].startswith(("counts vary in ", "counts grow from call to call in "))
    assert found["grows"]["reason"].startswith("counts grow from call to call in ")


def test_equal_arms_have_equal_counts_and_trip_no_gate(stage: Stage):
    code, answer, told = stage.measure(workloads("equal", "more", "fewer"), *FLAGS, differ=False)
    assert code == 0, told
    assert {each["verdict"] for each in answer["metrics"] if each["metric"] == "calls"} == {"same"}
    assert {each["ratio"] for each in answer["metrics"] if each["metric"] == "calls"} == {1.0}
