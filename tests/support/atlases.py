"""Atlases with a known truth: workers whose times follow a script, and figures that are made up."""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.atlas import run
from orchestrator.atlas.figures import (
    AtlasCase,
    AtlasCause,
    AtlasCell,
    AtlasClaim,
    AtlasFigures,
    AtlasRatio,
    AtlasRelease,
    AtlasResult,
)
from orchestrator.atlas.run import AtlasActions, AtlasOutcome
from orchestrator.atlas.state import AtlasQuestion
from orchestrator.model import Case
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View
from tests.support.actors import Part, Stage, offer
from tests.support.questions import Theatre
from workloads.sketches import sketch

CASES = ("power[style=function]", "power[style=eager]", "predict[call=predict,state=compiled,model=tiny]")
RELEASES = ("2.8.4", "2.9.3", "2.10.1", "2.11.1", "2.12.1", "2.13.0")


class Truth(dict):
    """The parts of a stage: from a release on, a case takes more time or memory, or returns another result."""

    def __init__(self, **truths: object) -> None:
        super().__init__()
        self.slow: dict[tuple[str, str], float] = truths.get("slow", {})
        self.hungry: dict[tuple[str, str], float] = truths.get("hungry", {})
        self.other: str = truths.get("other", "")
        self.deadly: dict[str, str] = truths.get("deadly", {})
        self.noise: float = truths.get("noise", 0.01)

    def get(self, key, default=None):
        case, release = key
        if self.deadly.get(release) in (case, "all"):
            return Part(dies=("open", 0), reason="AttributeError: it is gone")

        def factor(of: dict[tuple[str, str], float]) -> float:
            found = 1.0
            for (slow_case, since), times in of.items():
                found *= times if slow_case == case and _is_since(release, since) else 1.0
            return found

        def take_ms(number: int) -> float:
            return 10.0 * factor(self.slow) * random.Random(f"{case}/{release}/{number}").gauss(1.0, self.noise)

        is_other = bool(self.other) and _is_since(release, self.other)
        return Part(
            take_ms,
            memory_kb=int(2**18 * factor(self.hungry)),
            output=sketch([1.0, 5.0] if is_other else [1.0, 2.0]),
        )


def _is_since(release: str, since: str) -> bool:
    return RELEASES.index(release) >= RELEASES.index(since)


def measure(
    monkeypatch: pytest.MonkeyPatch, folder: Path, truth: Truth, *, releases: tuple[str, ...] = RELEASES,
    against: str = "", budget_s: float | None = None, explained: int = 0, engine: Theatre | None = None,
    resume: bool = False, view: View | None = None, kind: str = "venv", **actions: object,
) -> AtlasOutcome:  # fmt: skip
    """An atlas of the three cases, measured by actors."""
    stage = Stage(parts=truth)
    offer(monkeypatch, **{kind: lambda options: engine or Theatre(stage)})
    options = RunOptions(selected=CASES, engine=kind, seed=7, metrics=("first", "memory", "import", "output"))
    question = AtlasQuestion(
        title="A small atlas", releases=releases, against=against, run=options, explained=explained
    )
    if resume:
        path, state = folder, run.resume_atlas(folder)
    else:
        path, state = run.begin_atlas(question, folder, view or View())
    return run.measure_atlas(path, state, view or View(), budget_s, replace(AtlasActions(), **actions))


def ratio(case: str, newer: str, older: str, value: float, verdict: str = "slower", **more: object) -> AtlasRatio:
    made = AtlasRatio(
        case=case, metric="time", older=older, newer=newer, rounds=6, verdict=verdict, ratio=value,
        ci_low=value * 0.97, ci_high=value * 1.03, size=None if verdict in ("same", "inconclusive") else "beyond",
        p=0.5 if verdict in ("same", "inconclusive") else 1e-6,
    )  # fmt: skip
    return replace(made, **more)


def figures(releases: int = 4, text: str = "") -> AtlasFigures:
    """Figures of two cases; the second release is slower in the first case, for a known reason."""
    numbers = [f"2.{number}.0" for number in range(releases)]
    cases = [Case("power", (("style", text or "eager"),)), Case("predict", ())]
    first = cases[0].label
    newest = numbers[-1]
    steps = [
        ratio(case.label, new, old, 1.5 if (case.label, new) == (first, numbers[1]) else 1.0,
              "slower" if (case.label, new) == (first, numbers[1]) else "same")
        for case in cases for old, new in pairwise(numbers)
    ]  # fmt: skip
    levels = [ratio(case.label, number, newest, 1.0, "same") for case in cases for number in numbers[:-1]]
    named = (first, "time", numbers[0], numbers[1])
    return AtlasFigures(
        title=text or "An atlas of stubs",
        built="2026-02-03",
        tool="0.1",
        margin=0.05,
        reference=newest,
        machine={"cpu": text or "A CPU", "engine": "venv", "device": "cpu", "usable_cores": "2", "memory_mb": "8192"},
        releases=tuple(
            AtlasRelease(name=number, python="3.11", keras=number, measured="2026-02-01" if place else "")
            for place, number in enumerate(numbers)
        ),
        cases=tuple(
            AtlasCase(label=case.label, workload=case.workload, params=dict(case.params), summary=text or "It runs.")
            for case in cases
        ),
        cells=tuple(
            AtlasCell(case=case.label, release=number, outcome="measured", reason="", figures={"time": 0.01})
            for case in cases
            for number in numbers
        ),
        steps=tuple(steps),
        levels=tuple(levels),
        results=(
            AtlasResult(
                case=first, older=numbers[1], newer=numbers[2], verdict="differs", difference=0.5, reason=text
            ),
        ),
        causes=(
            AtlasCause(
                case=first, metric="time", older=numbers[0], newer=numbers[1], findings=(text or "Why: Keras",)
            ),
        ),
        claims=(
            AtlasClaim(
                case=named[0], metric="time", older=named[2], newer=named[3], name="one", title=text or "It is slow",
                source=text or "tf#1",
            ),
        ),
        notes=(text,) if text else (),
        judged_together=len(steps) + len(levels),
    )  # fmt: skip
