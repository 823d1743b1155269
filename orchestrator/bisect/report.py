"""The report of a search: the answer, the path with one line per visited version, and the steps; also as an object."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.bisect.joined_ratios import Joined, join_ratios
from orchestrator.bisect.search import BisectFinding, Found, PathPart
from orchestrator.bisect.state import State
from orchestrator.bisect.wording import conclusions, share
from orchestrator.plan.pairs import ALPHA
from orchestrator.reports.columns import Notes, format_verdict, interval, ratio
from orchestrator.reports.grid import Grid
from orchestrator.reports.ratio_table import RatioColumn, RatioPoint, ratio_table
from orchestrator.reports.table import below
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.bisect/1"
WIDE = 100
LEGEND = (
    "plot: ratio to {first} with its interval on a log scale, joined over the runs between them · step: against the "
    "version above it, both in one run · between: versions that were not visited, or cannot be"
)


def layout(known: State, found: Found, width: int) -> RenderableType:
    notes = Notes()
    parts: list[RenderableType] = [_head(known)]
    for place, line in enumerate(conclusions(known, found)):
        parts.append(safe_text(line, style="bold" if place == 0 else ""))
    if found.whole is not None:
        parts += [Text(), _way(known, found, width, notes)]
    left_out = known.skipped.values()
    if left_out or known.notes:
        parts.append(Text())
    told = [f"{one.version} was left out: {one.reason.partition(chr(10))[0]}" for one in left_out]
    parts += [safe_text(line, style="yellow") for line in told]
    parts += [safe_text(note, style="yellow") for note in known.notes]
    return Group(*parts, *below(notes.lines(ALPHA)))


def _head(known: State) -> Text:
    lines = (
        safe_text(f"tfcompare bisect {known.case.label}", style="bold"),
        safe_text(facts(known), style="dim"),
        safe_text(LEGEND.format(first=known.question.good), style="dim"),
    )
    return Text("\n").join(lines)


def facts(known: State) -> str:
    """Return where and how the search was measured, in one line."""
    host, run = known.host, known.question.run
    device = "gpu" if run.environments.gpu else "cpu"
    machine = f"{host.get('cpu')}, {host.get('usable_cores')} cores"
    told = (known.engine, device, machine, f"margin {run.margin:.0%}", took(known))
    return " · ".join(str(one) for one in told if one)


def took(known: State) -> str:
    steps = len(known.measured)
    seconds = sum(step.seconds for step in known.steps)
    return f"{steps} step{'s' if steps != 1 else ''} in {seconds / 60:.1f} min"


@dataclass(frozen=True)
class PathRow:
    """A version on the path, with its ratio to the first version and, except for the first, the part that leads to it.

    `share` is the part's share of the whole change.
    """

    version: str
    joined: Joined | None
    part: PathPart | None
    share: float | None

    @property
    def finding(self) -> BisectFinding | None:
        return self.part.finding if self.part else None

    @property
    def ratio_text(self) -> str:
        return ratio(self.joined.ratio) if self.joined else ""

    @property
    def interval_text(self) -> str:
        return interval(self.joined) if self.joined and self.joined.over else ""

    @property
    def step_ratio_text(self) -> str:
        return ratio(self.finding.ratio) if self.finding and self.finding.ratio else ""

    @property
    def step_interval_text(self) -> str:
        return interval(self.finding) if self.finding else ""

    @property
    def share_text(self) -> str:
        return f"{self.share:.0%}" if self.share is not None and self.finding and self.finding.changed else ""

    @property
    def skipped_over(self) -> tuple[str, ...]:
        """The versions between this one and the one before it on the path."""
        return self.part.inside if self.part else ()


def path_rows(known: State, found: Found) -> list[PathRow]:
    ratios = join_ratios(known.question.good, known.findings)
    first = found.parts[0].earlier
    return [
        PathRow(first, ratios.get(first), None, None),
        *(PathRow(part.later, ratios.get(part.later), part, share(part, found.whole)) for part in found.parts),
    ]


def _way(known: State, found: Found, width: int, notes: Notes) -> Grid:
    rows = path_rows(known, found)
    visited = join_ratios(known.question.good, known.findings).values()
    changed = found.whole is not None and found.whole.changed
    between = RatioColumn[PathRow](header="between", cell=lambda row: str(len(row.skipped_over) or ""), right=True)
    return ratio_table(
        safe_text("the way", style="bold"),
        rows,
        width,
        before=(
            RatioColumn(header="version", cell=lambda row: row.version),
            RatioColumn(header="ratio", cell=lambda row: row.ratio_text, right=True),
            RatioColumn(header="interval", cell=lambda row: row.interval_text, right=True, since=WIDE),
        ),
        point=_ratio_point,
        after=(
            RatioColumn(header="step", cell=lambda row: row.step_ratio_text, right=True),
            RatioColumn(header="interval", cell=lambda row: row.step_interval_text, right=True, since=WIDE),
            RatioColumn(header="verdict", cell=lambda row: _verdict(row.part, notes)),
            RatioColumn(header="share", cell=lambda row: row.share_text if changed else "", right=True),
            *([between] if any(row.skipped_over for row in rows) else []),
        ),
        # Not every version that was visited is on the path.
        also=[(joined.ratio, joined.ci_low, joined.ci_high) for joined in visited],
    )


def _ratio_point(row: PathRow) -> RatioPoint:
    if row.joined is None:
        return RatioPoint()
    verdict = row.finding.verdict if row.finding else None
    if not row.joined.over:
        return RatioPoint(row.joined.ratio, verdict=verdict)
    return RatioPoint(row.joined.ratio, row.joined.ci_low, row.joined.ci_high, verdict)


def _verdict(part: PathPart | None, notes: Notes) -> Text:
    if part is None or part.finding is None:
        return Text()
    return format_verdict(part.finding.verdict, _why(part), notes)


KINDS = {
    "spread": "spread: neither half of the way between differs by more than the margin",
    "between": "what lies between does not tell in which version it came",
    "open": "not followed to its end: --resume goes on",
}


def _why(part: PathPart) -> str:
    reason = part.finding.reason if part.finding else ""
    return "; ".join(told for told in (reason, KINDS.get(part.kind, "")) if told)


def as_object(known: State, found: Found) -> dict[str, Any]:
    """Return the `tfcompare.bisect/1` object, which is part of the interface."""
    places = join_ratios(known.question.good, known.findings)
    return {
        "schema": SCHEMA,
        "created": known.created.isoformat(),
        "workload": known.case.workload,
        "params": dict(known.case.params),
        "good": known.question.good,
        "bad": known.question.bad,
        "engine": known.engine,
        "device": "gpu" if known.question.run.environments.gpu else "cpu",
        "margin": known.question.run.margin,
        "host": known.host,
        "finished": not found.wanted,
        "conclusions": list(conclusions(known, found)),
        "whole": _finding_object(found.whole) if found.whole else None,
        "changes": [
            _part_object(part, found.whole) for part in found.parts if part.finding is not None and part.finding.changed
        ],
        "way": [_part_object(part, found.whole) for part in found.parts],
        "versions": [
            {"version": version, "ratio": at.ratio, "ci_low": at.ci_low, "ci_high": at.ci_high, "runs": at.over}
            for version, at in _order_of_versions(known.candidates, places)
        ],
        "left_out": [{"version": one.version, "reason": one.reason} for one in known.skipped.values()],
        "steps": [
            {
                "kind": step.kind,
                "versions": list(step.versions),
                "run": step.run,
                "seconds": round(step.seconds, 1),
                "findings": [_finding_object(finding) for finding in step.findings],
            }
            for step in known.steps
        ],
        "notes": list(known.notes),
    }


def _order_of_versions(candidates: Sequence[str], places: dict[str, Joined]) -> list[tuple[str, Joined]]:
    return [(version, places[version]) for version in candidates if version in places]


def _finding_object(finding: BisectFinding) -> dict[str, Any]:
    return {
        "earlier": finding.earlier,
        "later": finding.later,
        "verdict": finding.verdict,
        "ratio": finding.ratio,
        "ci_low": finding.ci_low,
        "ci_high": finding.ci_high,
        "rounds": finding.rounds,
        "reason": finding.reason or None,
    }


def _part_object(part: PathPart, whole: BisectFinding | None) -> dict[str, Any]:
    of = share(part, whole)
    return {
        "earlier": part.earlier,
        "later": part.later,
        "kind": part.kind,
        "between": list(part.inside),
        "share": of if of is not None and math.isfinite(of) else None,
        "finding": _finding_object(part.finding) if part.finding else None,
    }
