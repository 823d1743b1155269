"""`--fail-on` in runs of the real command with real workers: what is true, and what nobody could measure."""

from pathlib import Path

import pytest

from tests.support.commands import called
from tests.support.stub_runs import Scene

# Calls that take too long for so many as a leak needs, and that return nothing which has a value.
SLOW = """
import time

def build(tf, params):
    return lambda: time.sleep(0.11)
"""


pytestmark = pytest.mark.slow


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_what_a_run_could_not_measure_fails_it_and_what_it_measured_is_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    flags = ("--rounds", "4", "--metric", "leak,output,memory")
    code, answer, stderr = scene.run(SLOW, *flags, "--fail-on", "slower>50%,leak:more,output:differs")
    assert code == 3
    assert "--fail-on leak:more had nothing to judge: none of 1 comparison could be made: calls of 0.1 s" in stderr
    assert "--fail-on output:differs had nothing to judge: none of 1 comparison" in stderr
    assert answer["contrasts"][0]["ratio"] == pytest.approx(1.0, abs=0.2)
    for gate, code in (("slower>50%", 0), ("leak:more", 3), ("leak:inconclusive", 1), ("memory:more>50%", 0)):
        assert called(monkeypatch, "report", str(scene.out), "--fail-on", gate) == code, gate
    capsys.readouterr()


def test_what_a_gate_needs_is_measured_unless_the_user_chose_something_else(scene: Scene) -> None:
    code, answer, stderr = scene.run(SLOW, "--rounds", "4", "--fail-on", "cpu:slower>500%")
    assert code == 0, stderr
    assert "comparing cpu as well, for --fail-on" in stderr
    assert {each["metric"] for each in answer["metrics"]} == {"first", "peak_rss", "cpu"}
