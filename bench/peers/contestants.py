"""Two arms with a known true ratio, compared by each tool in the same wall time.

A comparison by asv or pyperf is two of its runs, one after the other, each taking half the time: asv does not alternate
existing environments, and pyperf alternates nothing. A rehearsal shows how many fresh processes fit into a run.
"""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench import arena
from bench.peers import pyperf
from bench.peers.asv import AFTER, BEFORE, Asv
from bench.peers.places import Places, Suite
from bench.peers.pyperf import Pyperf
from orchestrator.model import Case
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder

# In percent, asked of every tool in addition to its own default: a threshold of 5 finds no difference of 5.
THRESHOLD = 2
Arms = Mapping[str, arena.Arm]


@dataclass(frozen=True)
class Compared:
    """What a tool reported under each of its settings, its wall time, and the fresh processes that each arm got."""

    words: tuple[str, ...]
    wall_s: float
    processes: int


class Contestant(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> tuple[str, ...]: ...

    def compare(self, arms: Arms, folder: Path, seed: int) -> Compared:
        """Compare the arms named before and after, with all files written into a new folder."""


@dataclass(frozen=True)
class ByAsv:
    host: Path
    python: Path
    case: str
    rounds: int
    name: str = "asv"
    settings: tuple[str, ...] = ("its default, a factor of 1.1", f"`--factor {1 + THRESHOLD / 100}`")

    @classmethod
    def rehearsed(cls, places: Places, version: str, case: str, wall_s: float, scratch: Path) -> "ByAsv":
        python, suite = places.inside[version], _suite(_rehearsal(version, scratch)[BEFORE], case)
        asv = Asv.create(places.asv, scratch / "asv")
        wall = asv.run([python], BEFORE, suite)
        rounds = asv.rounds(case)
        each = asv.results(python)[case].took_s / rounds
        return cls(places.asv, python, case, _fitting(wall_s / 2, wall, rounds, each))

    def compare(self, arms: Arms, folder: Path, seed: int) -> Compared:
        asv = Asv.create(self.host, folder)
        rounds = "--attribute", f"rounds={self.rounds}"
        wall = sum(asv.run([self.python], name, _suite(arms[name], self.case), *rounds) for name in (BEFORE, AFTER))
        words = asv.compare(self.case), asv.compare(self.case, "--factor", str(1 + THRESHOLD / 100))
        return Compared(words, wall, self.rounds)


@dataclass(frozen=True)
class ByPyperf:
    python: Path
    case: str
    processes: int
    name: str = "pyperf"
    settings: tuple[str, ...] = ("its default, no threshold", f"`--min-speed {THRESHOLD}`")

    @classmethod
    def rehearsed(cls, places: Places, version: str, case: str, wall_s: float, scratch: Path) -> "ByPyperf":
        python, suite = places.inside[version], _suite(_rehearsal(version, scratch)[BEFORE], case)
        wall = Pyperf(scratch).run(python, case, suite, 1, scratch / "pyperf.json")
        each = pyperf.result(scratch / "pyperf.json").another(wall)
        return cls(python, case, _fitting(wall_s / 2, wall, 1, each))

    def compare(self, arms: Arms, folder: Path, seed: int) -> Compared:
        folder.mkdir(parents=True)
        tool, files = Pyperf(folder), {name: folder / f"{name}.json" for name in (BEFORE, AFTER)}
        wall = sum(
            tool.run(self.python, self.case, _suite(arms[name], self.case), self.processes, file)
            for name, file in files.items()
        )
        words = (
            tool.compare(self.python, files[BEFORE], files[AFTER]),
            tool.compare(self.python, files[BEFORE], files[AFTER], "--min-speed", THRESHOLD),
        )
        return Compared(words, wall, self.processes)


@dataclass(frozen=True)
class ByTfcompare:
    case: Case
    budget_s: float
    name: str = "tfcompare"
    settings: tuple[str, ...] = ("its default, `--margin 5`", f"`--margin {THRESHOLD}`, on the same rounds")

    @classmethod
    def rehearsed(cls, version: str, case: Case, wall_s: float, scratch: Path) -> "ByTfcompare":
        """Measure a case that does nothing, to learn how long workers take to start and end."""
        arms = _rehearsal(version, scratch)
        for arm in arms.values():
            shutil.copy(arena.WORKLOADS / "empty.py", arm.folder)
        begun = time.monotonic()
        arena.run(arms, [Case("empty", ())], folder=scratch / "tfcompare", seed=1, looks=(1,))
        return cls(case, wall_s - (time.monotonic() - begun))

    def compare(self, arms: Arms, folder: Path, seed: int) -> Compared:
        begun = time.monotonic()
        evaluation = arena.run(arms, [self.case], folder=folder, seed=seed, budget_s=self.budget_s)
        wall = time.monotonic() - begun
        run = RunFolder.open(folder)
        run.write_plan(replace(run.read_plan(), margin=THRESHOLD / 100))
        words = tuple(judged.comparisons[0].verdict for judged in (evaluation, judge_run(run)))
        return Compared(words, wall, evaluation.arms[0].rounds)


def _rehearsal(version: str, scratch: Path) -> dict[str, arena.Arm]:
    return arena.slowed(version, {BEFORE: 0.0, AFTER: 0.0}, scratch)


def _suite(arm: arena.Arm, case: str) -> Suite:
    return {case: (str(arm.folder / "slowed.py"), {"body": case})}


def _fitting(wall_s: float, rehearsed_s: float, processes: int, each_s: float) -> int:
    """Return the number of processes that brings a run nearest to the wall time, based on a rehearsal with some."""
    return max(1, processes + round((wall_s - rehearsed_s) / each_s))
