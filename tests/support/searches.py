"""Searches through made-up histories, as they would be kept."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from orchestrator.bisect.state import Question, SkippedVersion, State, Step
from orchestrator.plan.request import RunOptions
from tests.support.builders import case
from tests.support.worlds import MARGIN, World, stepped

RELEASES = ("1.14.0", "1.15.5", "2.0.0", "2.1.4", "2.2.3", "2.3.4", "2.4.4", "2.5.3", "2.6.5")


def told(world: World, candidates: Sequence[str] = RELEASES, most: int = 100, **changes) -> State:
    """A search through a made-up history, as it would be kept."""
    only = case("predict", call="predict", state="uncompiled", model="tiny")
    known = State(
        created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        tool="0.1.0",
        contract="x",
        host={"cpu": "A CPU", "usable_cores": 2},
        sources={},
        question=Question(good=candidates[0], bad=candidates[-1], run=RunOptions(margin=MARGIN), **changes),
        case=only,
        candidates=tuple(candidates),
        engine="venv",
    )
    while (found := known.search_result).wanted and len(known.steps) < most:
        wanted = found.wanted[0]
        findings, lost = world.measure(wanted)
        skipped = tuple(
            SkippedVersion(version=one, reason="refused: not in this one", environment=False) for one in lost
        )
        step = Step(
            kind=wanted.kind, versions=wanted.versions, run=f"steps/{len(known.steps) + 1:02}", seconds=30.0,
            findings=tuple(findings), skipped=skipped,
        )  # fmt: skip
        known = replace(known, steps=(*known.steps, step))
    return known


ONE = {3: 2.85}
SEVERAL = {1: 0.2, 3: 2.85, 6: -0.3}
SCENES = {
    "one": lambda: told(stepped(RELEASES, ONE)),
    "several": lambda: told(stepped(RELEASES, SEVERAL)),
    "stepped-over": lambda: told(stepped(RELEASES, {3: 1.0}, skipped=frozenset({"2.0.0", "2.2.3"}))),
    "spread": lambda: told(stepped(RELEASES, dict.fromkeys(range(1, 9), 0.009), noise=0.005)),
    "same": lambda: told(stepped(RELEASES, {})),
    "undecided": lambda: told(stepped(RELEASES, {4: 0.04}, noise=0.3, thorough_noise=0.2)),
    "unfinished": lambda: told(stepped(RELEASES, SEVERAL), most=2),
    "nothing": lambda: told(stepped(RELEASES, {}), most=0),
    "every": lambda: told(stepped(RELEASES, {3: 0.5, 6: -0.5}), every=True),
}
