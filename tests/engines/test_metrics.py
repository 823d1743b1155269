"""A version that needs more memory, starts later, leaks and computes something else: each is found, and named.

TensorFlow is a stub, so that nothing else differs; workers, their memory and their results are real.
"""

from pathlib import Path

import pytest

from orchestrator.results.run import load_run
from tests.conftest import run_command
from tests.support.end_to_end import Answer, compare

pytestmark = pytest.mark.usefixtures("stubbed")

LEAK_BYTES = 100 * 1024
WORKLOAD = f"""
import time

import numpy


def build(tf, params):
    later = tf.__version__ != "1.14.0"
    weights = numpy.random.RandomState(1).rand(8, 16).astype("float32")
    if later:
        # In one layer.
        weights[:, 3] *= 1 + 1e-3
    inputs = numpy.random.RandomState(2).rand(4, 8).astype("float32")
    held, leaked, calls = numpy.ones((3 if later else 1) * 1000000), [], []

    def step():
        time.sleep(0.0002 if calls else 0.1 if later else 0.05)
        calls.append(None)
        if later:
            leaked.append(bytearray(b"x" * {LEAK_BYTES}))
        return inputs.dot(weights)

    return step
"""
SAME = """
import random

import numpy


def build(tf, params):
    # Seeded by the worker, and seeded here.
    draw = random if params["draws"] == "other" else random.Random(1)
    return lambda: numpy.array([draw.random() for _ in range(10)])


PARAMS = {"draws": ("same", "other")}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "changed.py").write_text(WORKLOAD)
    (folder / "same.py").write_text(SAME)
    return folder


def measure(tfcompare: str, own: Path, out: Path, *more: str) -> tuple[int, Answer, str]:
    flags = ("--engine", "venv", "--versions", "1.14,2.0", "--quiet", "--rounds", "4", "--workload-folder", str(own))
    return compare(tfcompare, *flags, "--output", out, *more)


def test_memory_first_call_leak_and_result_are_told(tfcompare: str, own: Path, tmp_path: Path) -> None:
    gates = "memory:more>5%,first:slower,output:differs"
    code, answer, stderr = measure(tfcompare, own, tmp_path / "run", "--case", "changed", "--fail-on", gates)
    assert code == 1, stderr
    assert "1 memory:more>5%, 1 first:slower, 1 output:differs of 1 comparison " in stderr
    found = {entry["metric"]: entry for entry in answer["metrics"]}
    assert set(found) == {"first", "memory"}
    assert (found["memory"]["verdict"], found["first"]["verdict"]) == ("slower", "slower")
    assert found["memory"]["ratio"] > 1.1
    assert found["first"]["ratio"] > 1.5
    [output] = answer["outputs"]
    assert output["verdict"] == "differs"
    assert output["floor"] == 0
    assert 1e-4 < output["difference"] < 1e-2
    old, new = answer["arms"]
    assert abs(old["figures"]["leak"]) < LEAK_BYTES / 10
    assert LEAK_BYTES * 0.8 < new["figures"]["leak"] < LEAK_BYTES * 1.3
    told = " ".join(run_command(tfcompare, "report", tmp_path / "run", "--table", "details").stdout.split())
    assert "2.0.0 needs more memory than 1.14.0 in 1 of 1 case (changed, " in told
    assert "2.0.0 takes longer for the first call than 1.14.0 in 1 of 1 case (changed, " in told
    assert "2.0.0 returns different results from 1.14.0 in 1 of 1 case (changed: one value by " in told
    # Also what the run was not asked for.
    other = run_command(tfcompare, "report", tmp_path / "run", "--metric", "memory,build,leak,import")
    assert "2.0.0 grows more with each call than 1.14.0 in 1 of 1 case (changed, " in " ".join(other.stdout.split())
    assert "peak memory, margin 5%" in other.stdout
    assert "build, margin 10%" in other.stdout
    assert "import of TensorFlow, margin 10%" in other.stdout
    assert "first call" not in other.stdout


def test_equal_versions_differ_in_nothing_and_random_results_are_compared_with_nothing(
    tfcompare: str, own: Path, tmp_path: Path
) -> None:
    code, answer, stderr = measure(tfcompare, own, tmp_path / "run", "--case", "same", "--fail-on", "output:differs")
    assert code == 0, stderr
    by_draws = {entry["params"]["draws"]: entry for entry in answer["outputs"]}
    assert by_draws["same"]["verdict"] == "equal"
    assert by_draws["other"]["verdict"] == "not comparable"
    assert "compat.fix_weights" in by_draws["other"]["reason"]
    # The releases themselves may differ by a few percent.
    assert all(entry["ratio"] < 1.1 for entry in answer["metrics"] if entry["metric"] == "memory")
    asked = ("--case", "same[draws=same]", "--metric", "time", "--rounds", "2")
    code, answer, stderr = measure(tfcompare, own, tmp_path / "times", *asked)
    assert (code, answer["metrics"], answer["outputs"]) == (0, [], [])


def test_a_run_that_is_asked_for_a_percentile_makes_enough_calls(tfcompare: str, own: Path, tmp_path: Path) -> None:
    code, answer, stderr = measure(tfcompare, own, tmp_path / "run", "--case", "same[draws=same]", "--metric", "p95")
    assert code == 0, stderr
    assert all(arm["figures"]["p50"] <= arm["figures"]["p95"] <= arm["figures"]["p99"] for arm in answer["arms"])
    assert [entry["metric"] for entry in answer["metrics"]] == ["p95"]
    assert answer["metrics"][0]["rounds"] == 4


def test_environments_are_compared_by_what_they_take_of_the_disk(tfcompare: str, own: Path, tmp_path: Path) -> None:
    asked = ("--case", "same[draws=same]", "--metric", "size")
    code, answer, stderr = measure(tfcompare, own, tmp_path / "run", *asked)
    assert code == 0, stderr
    sizes = [facts.size_bytes for facts in load_run(tmp_path / "run").manifest.environments.values()]
    [comparison] = answer["metrics"]
    assert comparison["metric"] == "size"
    assert comparison["ratio"] == pytest.approx(sizes[1] / sizes[0])
    assert comparison["ci_low"] == comparison["ratio"] == comparison["ci_high"]
