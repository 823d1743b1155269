"""The command after `Next:` as it is printed, on a simulated machine with load: its budget holds another look."""

import math
import random
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.model import Evaluation
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from tests.support.actors import Part, offer
from tests.support.clock import Clock
from tests.support.commands import called
from tests.support.theatre import DECIDED, OPEN, Theatre

CASES = (OPEN, DECIDED)


class LoadedMachine:
    """Rounds that take a third more or less, some of them twice as long, and more or less as load comes and goes."""

    def __init__(self, clock: Clock, seed: int) -> None:
        self.clock, self.draw = clock, random.Random(seed)
        self.usual_s = {case.label: math.exp(self.draw.uniform(0, 3)) for case in CASES}
        self.start_s = self.draw.choice([0.5, 2.0, 5.0])
        self.load = 1.0
        # Too noisy for any verdict.
        self.stage = clock.stage({case.label: self._take(case.label) for case in CASES}, "2.0.0")
        self.stage.parts.update({(case.label, "1.14.0"): Part() for case in CASES})
        self.stage.on_start = lambda version: self._pass(self.start_s / 2)

    def _scatter(self) -> float:
        return self.load * math.exp(self.draw.gauss(0, 0.3)) * (2.0 if self.draw.random() < 0.1 else 1.0)

    def _take(self, label: str) -> Callable[[int], float]:
        return lambda number: self.usual_s[label] * self._scatter()

    def _pass(self, seconds: float) -> None:
        self.clock.now += seconds * self._scatter()

    def change_load(self) -> None:
        self.load = math.exp(self.draw.gauss(0, 0.15))


def find_next_look(evaluation: Evaluation) -> int:
    """Return the first look that comes after all rounds that a run has."""
    rounds = max(comparison.rounds for comparison in evaluation.comparisons)
    return next(look for look in evaluation.plan.looks if look > rounds)


@pytest.mark.slow
@pytest.mark.parametrize("budget_s", ["30s", "2m"])
def test_the_next_command_suffices_for_another_look_on_a_loaded_machine(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys, budget_s: str
):
    monkeypatch.setattr("orchestrator.measure.run.time", SimpleNamespace(monotonic=lambda: clock.now))
    short: dict[int, str] = {}
    for seed in range(20):
        machine = LoadedMachine(clock, seed)
        offer(monkeypatch, venv=Theatre(machine.stage))
        out = tmp_path / str(seed)
        selected = [word for case in CASES for word in ("--case", case.label)]
        flags = ("--versions", "1.14,2.0", *selected, "--budget", budget_s, "--output", str(out), "--seed", str(seed))
        assert called(monkeypatch, "run", *flags) == 0
        look = find_next_look(judge_run(RunFolder.open(out)))
        command = capsys.readouterr().err.splitlines()[-1]
        assert command.startswith(f"Next:  tfcompare run --resume {out} --budget ")
        machine.change_load()
        assert called(monkeypatch, *shlex.split(command.removeprefix("Next:  "))[1:]) == 0
        reached = max(comparison.rounds for comparison in judge_run(RunFolder.open(out)).comparisons)
        if reached < look:
            short[seed] = f"{reached} of {look} rounds: {command}"
    assert len(short) <= 1, short
