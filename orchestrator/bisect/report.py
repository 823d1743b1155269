"""The report of a search: the answer, the path with one line per visited version, and the steps; also as an object."""

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.bisect.joined_ratios import Joined, join_ratios
from orchestrator.bisect.search import BisectFinding, Found, PathPart
from orchestrator.bisect.state import State
from orchestrator.bisect.wording import conclusions, share
from orchestrator.model import VerdictName
from orchestrator.plan.pairs import ALPHA
from orchestrator.reports.columns import MARKS, STYLES, Notes, interval, ratio
from orchestrator.reports.grid import Grid
from orchestrator.reports.ratio_plot import RatioScale, cells_for
from orchestrator.reports.table import below
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.bisect/1"
NARROWEST = 8
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


def path_steps(found: Found) -> list[tuple[str, PathPart | None]]:
    """Return the versions on the path, each with the part that leads to it."""
    return [(found.parts[0].earlier, None), *((part.later, part) for part in found.parts)]


def _way(known: State, found: Found, width: int, notes: Notes) -> Grid:
    places = join_ratios(known.question.good, known.findings)
    rows = [_row(version, part, places.get(version), found, notes) for version, part in path_steps(found)]
    headers = ["version", "ratio", "interval", "", "step", "interval", "verdict", "share", "between"]
    right = [False, True, True, False, True, True, False, True, True]
    dropped = [2, 5] if width < WIDE else []
    if not any(str(row[8]) for row in rows):
        dropped.append(8)
    keep = [at for at in range(len(headers)) if at not in dropped]
    widths = [max(len(headers[at]), *(len(str(row[at])) for row in rows)) for at in keep if at != 3]
    scale = RatioScale.over([(one.ratio, one.ci_low, one.ci_high) for one in places.values()], cells_for(width, widths))
    headers[3] = scale.header()
    grid = Grid(
        title=safe_text("the way", style="bold"),
        headers=[headers[at] for at in keep],
        right=[right[at] for at in keep],
        narrowest=NARROWEST,
    )
    for (version, part), row in zip(path_steps(found), rows, strict=True):
        verdict = _verdict_at(part, version == known.question.good)
        cells = [*row[:3], _plot(places.get(version), verdict, scale), *row[4:]]
        grid.add(*(cells[at] for at in keep))
    return grid


def _row(version: str, part: PathPart | None, at: Joined | None, found: Found, notes: Notes) -> list[str | Text]:
    where: list[str | Text] = [version, ratio(at.ratio) if at else "", interval(at) if at and at.over else "", ""]
    if part is None or part.finding is None:
        return [*where, "", "", "", "", str(len(part.inside)) if part and part.inside else ""]
    finding, of = part.finding, share(part, found.whole)
    verdict = Text(f"{MARKS[finding.verdict]} {finding.verdict}{notes.mark(_why(part))}", style=STYLES[finding.verdict])
    return [
        *where,
        ratio(finding.ratio) if finding.ratio else "",
        interval(finding),
        verdict,
        f"{of:.0%}" if of is not None and finding.changed and found.whole and found.whole.changed else "",
        str(len(part.inside)) if part.inside else "",
    ]


KINDS = {
    "spread": "spread: neither half of the way between differs by more than the margin",
    "between": "what lies between does not tell in which version it came",
    "open": "not followed to its end: --resume goes on",
}


def _why(part: PathPart) -> str:
    reason = part.finding.reason if part.finding else ""
    return "; ".join(told for told in (reason, KINDS.get(part.kind, "")) if told)


def _verdict_at(part: PathPart | None, first: bool) -> VerdictName | None:
    return None if first or part is None or part.finding is None else part.finding.verdict


def _plot(at: Joined | None, verdict: VerdictName | None, scale: RatioScale) -> Text:
    if at is None:
        return Text(scale.line(None, None, None))
    low, high = (at.ci_low, at.ci_high) if at.over else (None, None)
    return Text(scale.line(at.ratio, low, high, verdict), style=STYLES[verdict] if verdict else "")


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
