"""CPU time tells what is computed from what is waited for, by the real command with real workers.

Each case has a known truth; TensorFlow is the stub.
"""

import os
from pathlib import Path

import pytest

from orchestrator.results.run import load_run
from tests.support.processes import start_neighbours
from tests.support.truths import Stage, measure_twice

pytestmark = pytest.mark.slow

SPIN = """
    def spin(seconds):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass
    """
# What a call of either version does: which lasts longer by the clock, and which takes more CPU time.
BODIES = {
    "equal": "spin(0.01)",
    "ten_percent_more": "spin(0.011 if NEWER else 0.01)",
    "waits_longer": "spin(0.01); time.sleep(0.004 if NEWER else 0.001)",
    "waits_less_and_computes_more": "spin(0.012 if NEWER else 0.01); time.sleep(0.001 if NEWER else 0.02)",
    "in_a_child": "in_child(0.012 if NEWER else 0.01)",
    "in_a_thread": "in_thread(0.012 if NEWER else 0.01)",
}
HELPERS = """
    import threading

    def in_child(seconds):
        child = os.fork()
        if child == 0:
            spin(seconds)
            os._exit(0)
        os.waitpid(child, 0)

    def in_thread(seconds):
        thread = threading.Thread(target=spin, args=(seconds,))
        thread.start()
        thread.join()
    """
BUILD = """
    def build(tf, params):
        def step():
            {body}
        return step
    """
WALL = {
    "equal": "same", "ten_percent_more": "slower", "waits_longer": "slower", "waits_less_and_computes_more": "faster",
    "in_a_child": "slower", "in_a_thread": "slower",
}  # fmt: skip
CPU = WALL | {"waits_longer": "same", "waits_less_and_computes_more": "slower"}


def workloads(*names: str) -> dict[str, str]:
    return {f"{name}.py": "".join((SPIN, HELPERS, BUILD.format(body=BODIES[name]))) for name in names}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, {}, {})


def test_verdicts_by_cpu_time_are_those_of_what_is_computed(stage: Stage):
    flags = ("--judge", "cpu", "--rounds", "6", "--metric", "time", "--fail-on", "slower")

    def measure_bodies(stage: Stage) -> set[str]:
        code, answer, told = stage.measure(workloads(*BODIES), *flags, differ=True)
        assert code == 1, told
        found = {each["workload"]: each for each in answer["comparisons"]}
        assert answer["run"]["judge"] == "cpu"
        assert found["ten_percent_more"]["ratio"] == pytest.approx(1.1, abs=0.03)
        assert {each["cpu_ratio"] for each in found.values()} == {None}
        for arm in answer["arms"]:
            assert arm["figures"]["time"] == arm["figures"]["cpu"] > 0.009
            assert arm["wall_s"] > arm["figures"]["cpu"] * 0.99
        replicates = load_run(stage.folder / "different" / "run").to_arrow("replicates")
        assert replicates["wall_ns"].null_count == 0
        return {f"{name}: {each['verdict']}" for name, each in found.items()}

    right = {f"{name}: {verdict}" for name, verdict in CPU.items()}
    assert measure_twice(stage, right, measure_bodies) == right


def test_wall_time_says_otherwise_and_cpu_time_is_beside_it(stage: Stage):
    names = ("waits_longer", "waits_less_and_computes_more")
    code, answer, told = stage.measure(workloads(*names), "--rounds", "6", "--metric", "time", differ=True)
    assert code == 0, told
    found = {each["workload"]: each for each in answer["comparisons"]}
    # Other processes can hide what wall times show.
    assert all(each["verdict"] in (WALL[name], "inconclusive") for name, each in found.items()), told
    assert {name: each["cpu_verdict"] for name, each in found.items()} == {name: CPU[name] for name in names}, told
    assert {arm["wall_s"] for arm in answer["arms"]} == {None}


def test_equal_arms_are_the_same_by_cpu_time_and_trip_no_gate(stage: Stage):
    flags = ("--judge", "cpu", "--rounds", "6", "--metric", "time", "--fail-on", "slower,inconclusive")

    def measure_equal(stage: Stage) -> set[str]:
        # Bodies that compute alike in one version do nothing else in two.
        bodies = workloads("waits_longer", "in_a_child", "in_a_thread")
        code, answer, told = stage.measure(bodies, *flags, differ=False)
        verdicts = {each["verdict"] for each in answer["comparisons"]}
        assert code == (0 if verdicts == {"same"} else 1), told
        return verdicts

    assert measure_twice(stage, {"same"}, measure_equal) == {"same"}


def test_calls_that_compute_nothing_are_not_judged_by_cpu_time(stage: Stage):
    nothing = {"nothing.py": "def build(tf, params):\n    return type(None)\n"}
    _, answer, told = stage.measure(nothing, "--judge", "cpu", "--rounds", "4", "--metric", "time", differ=True)
    [found] = answer["comparisons"]
    assert found["verdict"] == "inconclusive", told
    assert "its calls take too little CPU time to be judged by it" in found["reason"]


def test_a_program_is_judged_by_the_cpu_time_of_all_its_processes(stage: Stage):
    program = f"{SPIN}\n{HELPERS}\n    in_child(0.4 if NEWER else 0.2)\n    time.sleep(0.05 if NEWER else 0.5)\n"
    flags = ("--judge", "cpu", "--rounds", "6")

    def measure_program(stage: Stage) -> set[str]:
        _, answer, told = stage.measure({"program.py": program}, *flags, differ=True, program="program.py")
        [found] = answer["comparisons"]
        assert found["metric"] == "time"
        assert found["ratio"] > 1.2, told
        return {found["verdict"]}

    assert measure_twice(stage, {"slower"}, measure_program) == {"slower"}


def test_on_a_busy_machine_ratios_are_called_mixtures_and_cpu_time_has_the_truth(stage: Stage):
    names = ("equal", "ten_percent_more")
    with start_neighbours(2 * len(os.sched_getaffinity(0))):
        flags = ("--rounds", "6", "--metric", "time")
        _, answer, told = stage.measure(workloads(*names), *flags, differ=True)
    mixtures = [warning for warning in answer["warnings"] if "other work shared all cores" in warning]
    assert len(mixtures) == 1, told
    assert "--judge cpu compares CPU times" in mixtures[0]
    found = {each["workload"]: each for each in answer["comparisons"]}
    assert found["equal"]["cpu_verdict"] in ("same", "inconclusive"), told
    assert found["ten_percent_more"]["cpu_verdict"] in ("slower", "inconclusive"), told
    assert abs(found["ten_percent_more"]["cpu_ratio"] - 1.1) < 0.05, told
    assert found["ten_percent_more"]["cpu_spread"] < found["ten_percent_more"]["spread"], told
