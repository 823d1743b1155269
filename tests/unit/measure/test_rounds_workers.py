"""Measuring with real workers under a stub TensorFlow: what a death, a fresh worker and a first start leave behind."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from orchestrator.catalog.gpu_support import NO_GPUS, GpuSupport, Match
from orchestrator.machine.host import DisturbanceMonitor, Interference, Reading
from orchestrator.measure.round_range import first_rounds
from orchestrator.measure.rounds import RoundLoop
from orchestrator.measure.session import Session
from orchestrator.measure.workers import Workers
from orchestrator.model import BESIDE, Ended, Evaluation, Lost, Plan
from orchestrator.results.evaluation import judge_run
from orchestrator.results.past import read_past
from orchestrator.results.run_folder import RunFolder
from tests.support import stub
from tests.support.builders import NEW, OLD, case, case_pair, environment_facts, plan, run_folder, version_pair
from tests.support.stub_engine import Environment

CASES = tuple(case("tick", n=name) for name in "abc")
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
        self.run = RunFolder(folder / "run")

    def measure(self, asked: Plan, fitting: GpuSupport = NO_GPUS) -> Evaluation:
        self.run = run_folder(self.run.path, asked)
        environments = {
            version: Environment(
                environment_facts(version=str(version), kind="venv", identity="", lock="", python="3.11.7"), self.stub
            )
            for version in asked.targets
        }
        session = Session(asked, environments, self.run, self.own, fitting=fitting)
        workers = Workers(session)
        try:
            workers.start_all()
            RoundLoop(session, workers, first_rounds(asked)).measure()
            workers.stop()
        finally:
            workers.kill()
        return judge_run(self.run)

    def deaths(self) -> list[Ended]:
        return [entry for entry in self.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.mark.slow
def test_a_version_whose_gpu_code_was_made_first_keeps_its_results(rig: Rig):
    fitting = GpuSupport(matches=(Match(NEW, "", "jit", ""),))
    evaluation = rig.measure(plan(CASES[:2], pairs=PAIRS[:2], looks=(2,)), fitting)
    assert evaluation.broken == ()
    assert not [text for text in evaluation.warnings if "without a burst" in text]
    assert {(arm.target, arm.outcome, arm.rounds) for arm in evaluation.arms} == {
        (OLD, "measured", 2),
        (NEW, "measured", 2),
    }


# Its first call after a burst was announced ends the worker, once.
KILLING = """
    import os, time

    FLAG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kill")

    def build(tf, params):
        def step():
            if params["n"] == "a" and os.path.exists(FLAG):
                os.remove(FLAG)
                os.kill(os.getppid(), 9)
            time.sleep(0.002)
            return 1.0
        return step
"""


@pytest.mark.slow
def test_a_worker_that_is_killed_with_several_replicates_costs_one_death_and_one_repeated_visit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its other replicates are asked of nobody, and their cases are measured again with its arm."""
    rig = Rig(tmp_path, KILLING)
    begin = DisturbanceMonitor.begin
    visits = iter(range(1, 9))

    def announce(*values: Any) -> DisturbanceMonitor:
        if next(visits) == 3:
            (rig.own / "kill").touch()
        return begin(*values)

    monkeypatch.setattr(DisturbanceMonitor, "begin", announce)
    # A pilot that was disturbed is not the first round.
    causes = iter(["somebody else"])
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: next(causes, ""))
    evaluation = rig.measure(plan(CASES, pairs=PAIRS, looks=(3,)))
    killed, *others = rig.deaths()
    assert (killed.case, killed.how, killed.round) == ("tick[n=a]", "worker", 2)
    assert {(end.target, end.how, end.round) for end in others} == {(killed.target, BESIDE, 2)}
    assert sorted(end.case for end in others) == ["tick[n=b]", "tick[n=c]"]
    assert not any(isinstance(entry, Lost) for entry in rig.run.entries())
    assert evaluation.broken == ()
    assert {(arm.outcome, arm.rounds) for arm in evaluation.arms} == {("measured", 3)}
    assert (killed.failure, killed.external) in {("signal", True), ("memory", True)}
    past = read_past(rig.run.read_plan(), tuple(rig.run.entries()))
    assert (past.progress.ended, set(past.again)) == (set(), set())


# As an input pipeline does that fills its buffers.
FILLING = """
    import hashlib, threading, time

    def build(tf, params):
        def fill():
            block = bytes(1 << 20)
            while True:
                hashlib.sha256(block).digest()

        threading.Thread(target=fill, daemon=True).start()
        return lambda: time.sleep(0.005)
"""


def test_what_threads_do_while_another_arm_has_its_turn_is_own_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    in_own_bursts: list[float] = []
    counted: list[float] = []
    meanwhile, until = DisturbanceMonitor.meanwhile, Reading.until

    def witness(self: DisturbanceMonitor, own_s: float) -> Interference | None:
        in_own_bursts.append(own_s)
        return meanwhile(self, own_s)

    def count(self: Reading, later: Reading, own: float) -> Interference | None:
        counted.append(own)
        return until(self, later, own)

    monkeypatch.setattr(DisturbanceMonitor, "meanwhile", witness)
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: "")
    monkeypatch.setattr(Reading, "until", count)
    Rig(tmp_path, FILLING).measure(plan(CASES[:1], pairs=PAIRS[:1], looks=(2,)))
    # Both have a thread, and each of them a turn for half of the time.
    assert sum(counted) > 1.4 * sum(in_own_bursts) > 0
