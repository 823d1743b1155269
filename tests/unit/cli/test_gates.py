"""`--fail-on` in runs of the real command with real workers: what is true, and what nobody could measure."""

from pathlib import Path

import pytest

from tests.support.commands import called
from tests.support.truths import Stage

pytestmark = pytest.mark.slow

# Too slow for as many calls as a leak needs, and without a result. One of two cases needs the old version.
WORKLOAD = """
    from workloads import compat

    PARAMS = {"needs": ("nothing", "old")}

    def build(tf, params):
        if NEWER and params["needs"] == "old":
            raise compat.Refused("It needs the old version.")
        return lambda: time.sleep(0.2 if NEWER else 0.11)
"""
# By gate, what a run ends with whose versions differ, and one whose versions do not.
GATES = {
    "slower>50%": (1, 0),
    "faster>50%": (0, 0),
    "inconclusive": (1, 0),
    "memory:more>50%": (0, 0),
    "memory:inconclusive": (1, 0),
    "leak:more": (3, 3),
    "leak:inconclusive": (1, 1),
    "output:differs": (3, 3),
    "output:inconclusive": (1, 1),
    "slower>50%,leak:more": (3, 3),
    "first:slower": (2, 2),
    "build:slower": (2, 2),
    "cpu:slower": (2, 2),
    "traces:more": (2, 2),
    "p99:slower": (2, 2),
    "gpu_memory:more": (2, 2),
    "died": (0, 0),
}


@pytest.mark.parametrize("differ", [True, False], ids=["different", "equal"])
def test_each_gate_is_true_false_or_an_error_and_never_green_without_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, differ: bool
) -> None:
    stage = Stage(tmp_path, {}, {})
    flags = ("--rounds", "4", "--metric", "leak,output,memory", "--fail-on", "slower>50%,leak:more,output:differs")
    code, answer, stderr = stage.measure({"own.py": WORKLOAD}, *flags, differ=differ)
    assert code == 3
    assert "--fail-on leak:more had nothing to judge: none of 2 comparisons could be made" in stderr
    assert "--fail-on output:differs had nothing to judge: none of 2 comparisons could be made" in stderr
    assert ("1 slower>50% of 2 comparisons" in stderr) == differ
    assert len([each for each in answer["comparisons"] if each["ratio"]]) == (1 if differ else 2)
    run = tmp_path / ("different" if differ else "equal") / "run"
    codes = {gates: called(monkeypatch, "report", str(run), "--fail-on", gates) for gates in GATES}
    assert codes == {gates: both[not differ] for gates, both in GATES.items()}
    capsys.readouterr()
    # A mean needs two cases in both versions.
    assert [mean["cases"] for mean in answer["means"] if mean["metric"] == "time"] == ([] if differ else [2])


def test_what_a_gate_needs_is_measured_unless_the_user_chose_something_else(tmp_path: Path) -> None:
    flags = ("--case", "own[needs=nothing]", "--rounds", "4", "--fail-on", "cpu:slower>5000%")
    code, answer, stderr = Stage(tmp_path, {}, {}).measure({"own.py": WORKLOAD}, *flags, differ=False)
    assert code == 0, stderr
    assert "comparing cpu as well, for --fail-on" in stderr
    assert {each["metric"] for each in answer["metrics"]} == {"first", "memory", "cpu"}
