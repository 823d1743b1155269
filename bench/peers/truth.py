"""How often each tool is right about two arms with a known true ratio."""

import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Literal

from scipy import stats

from bench import arena
from bench.figures import Figure
from bench.peers.asv import AFTER, BEFORE
from bench.peers.contestants import Compared, Contestant
from bench.store import Store

SLOWDOWNS = (0.0, 0.05)


@dataclass(frozen=True)
class Trial:
    tool: str
    slowdown: float
    compared: Compared


def trials(
    version: str, case: str, contestants: Sequence[Contestant], repetitions: int, scratch: Path, store: Store
) -> list[Trial]:
    """Run every repetition that is not stored.

    In each, every tool meets every slowdown once, in a newly drawn order.
    """
    done = []
    for repetition in range(1, repetitions + 1):
        jobs = [(contestant, slowdown) for contestant in contestants for slowdown in SLOWDOWNS]
        random.Random(f"{case}/{repetition}").shuffle(jobs)
        for contestant, slowdown in jobs:
            name = f"{case}-{repetition}-{contestant.name}-{slowdown:.0%}"
            if before := store.read(name):
                compared = Compared(**{**before, "words": tuple(before["words"])})
            else:
                arms = arena.slowed(version, {BEFORE: 0.0, AFTER: slowdown}, scratch / name / "workloads")
                compared = contestant.compare(arms, scratch / name / "files", repetition)
                store.write(name, asdict(compared))
            done.append(Trial(contestant.name, slowdown, compared))
            print(
                f"{case} {repetition}/{repetitions}: {contestant.name} on +{slowdown:.0%}: "
                f"{', '.join(compared.words)} ({compared.wall_s:.1f} s, {compared.processes} processes an arm)",
                file=sys.stderr,
            )
    return done


def table(contestants: Sequence[Contestant], found: Sequence[Trial]) -> list[str]:
    called = ["A/A called different", *(f"+{slowdown:.0%} called slower" for slowdown in SLOWDOWNS[1:])]
    lines = [
        "| tool | setting | " + " | ".join(called) + " | wall time of a comparison | fresh processes an arm |",
        "|---|---|" + "---|" * (len(called) + 2),
    ]
    for contestant in contestants:
        own = [trial for trial in found if trial.tool == contestant.name]
        wall = mean(trial.compared.wall_s for trial in own)
        processes = mean(trial.compared.processes for trial in own)
        for place, setting in enumerate(contestant.settings):
            shares = [_share(own, place, slowdown) for slowdown in SLOWDOWNS]
            cells = (contestant.name, setting, *shares, f"{wall:.1f} s", f"{processes:.1f}")
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def figures_of(case: str, contestant: Contestant, found: Sequence[Trial]) -> list[Figure]:
    """Return what a tool finds under its default."""
    own = [trial for trial in found if trial.tool == contestant.name]
    names = ["equal arms called different", *(f"+{slowdown:.0%} called slower" for slowdown in SLOWDOWNS[1:])]
    figures = []
    for name, slowdown in zip(names, SLOWDOWNS, strict=True):
        hits = _hits(own, 0, slowdown)
        way: Literal["least", "most"] = "most" if slowdown else "least"
        detail = _share(own, 0, slowdown).replace(" (", ", ").rstrip(")")
        figures.append(Figure(f"{case}: {name}", sum(hits) / len(hits), "share", way, detail=detail))
    return figures


def _hits(own: Sequence[Trial], place: int, slowdown: float) -> list[bool]:
    """Return which trials found the slowdown; without one, those that found any difference."""
    wanted = ("slower",) if slowdown else ("slower", "faster")
    return [trial.compared.words[place] in wanted for trial in own if trial.slowdown == slowdown]


def _share(own: Sequence[Trial], place: int, slowdown: float) -> str:
    """Return how many trials found the slowdown, with the 95 % interval after Clopper and Pearson."""
    hits = _hits(own, place, slowdown)
    bounds = stats.binomtest(sum(hits), len(hits)).proportion_ci()
    return f"{sum(hits)} of {len(hits)} ({bounds.low:.0%} to {bounds.high:.0%})"
