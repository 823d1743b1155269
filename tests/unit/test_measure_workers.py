"""Measuring with real workers under a stub TensorFlow: what a death, a fresh worker and a first start leave behind."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.crew import Crew
from orchestrator.judge import judge_run
from orchestrator.match import Fitting, Match
from orchestrator.measure import Measurement
from orchestrator.model import Comparison, Ended, EnvironmentFacts, Plan
from orchestrator.progress import Quiet
from orchestrator.run import first_stretch
from orchestrator.rundir import RunDir
from tests.contract import stub
from tests.unit.builders import NEW, OLD, case, case_pair, plan, run_directory, version_pair
from tests.unit.test_profile import Environment

CASES = tuple(case("tick", n=name) for name in "abcd")
PAIRS = (*(version_pair(one) for one in CASES), *(case_pair(CASES[0], one) for one in CASES[1:]))
TICK = """
    import time

    def build(tf, params):
        def step():
            time.sleep(0.002)
            return 1.0
        return step
"""


class Rig:
    """A run of OLD and NEW with a workload of the test."""

    def __init__(self, folder: Path, source: str = TICK) -> None:
        self.own = folder / "own"
        self.own.mkdir()
        (self.own / "tick.py").write_text(dedent(source))
        self.stub = stub.write(folder / "stub")
        self.run = RunDir(folder / "run")

    def measure(self, asked: Plan, fitting: Fitting | None = None) -> Comparison:
        self.run = run_directory(self.run.path, asked)
        environments = {
            version: Environment(
                EnvironmentFacts(version=version, kind="venv", identity="", lock="", python="3.11.7"), self.stub
            )
            for version in asked.versions
        }
        crew = Crew(asked, environments, self.run, self.own, lambda text: None)
        slow = fitting.slow_starts if fitting else frozenset()
        try:
            crew.start_all()
            judge: Callable[[], Comparison] = lambda: judge_run(self.run, at_look=True)  # noqa: E731
            Measurement(asked, crew, self.run, Quiet(), judge, first_stretch(asked), slow_starts=slow).measure()
            crew.dismiss()
        finally:
            crew.kill()
        return judge_run(self.run)

    def deaths(self) -> list[Ended]:
        return [entry for entry in self.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_a_version_whose_gpu_code_was_made_first_keeps_its_results(rig: Rig):
    fitting = Fitting(matches=(Match(NEW, "", "jit", ""),))
    comparison = rig.measure(plan(CASES[:2], pairs=PAIRS[:2], looks=(2,)), fitting)
    assert comparison.broken == ()
    assert not [text for text in comparison.warnings if "steady" in text]
    assert {(arm.version, arm.outcome, arm.rounds) for arm in comparison.arms} == {
        (OLD, "measured", 2),
        (NEW, "measured", 2),
    }
