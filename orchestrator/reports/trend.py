"""Many versions as a trend: one line per version, compared with the baseline and with the version before it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.model import ArmResult, Case, Comparison, Contrast
from orchestrator.plan.pairs import in_order
from orchestrator.reports import table
from orchestrator.reports.columns import MARKS, STYLES, Notes, interval, ratio
from orchestrator.reports.grid import Grid
from orchestrator.reports.json import run_object
from orchestrator.reports.ratio_plot import RatioScale, cells_for
from orchestrator.reports.summary import by_candidate
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.trend/1"
NARROWEST = 8
# From here on there is room for intervals beside the plot.
WIDE = 92
MOST_NAMED = 5
LEGEND = (
    "plot: ratio to {baseline} with its interval, on a log scale · step: against the version before, by round; "
    "▲ slower ▼ faster = same ? not told"
)


@dataclass(frozen=True)
class TrendPoint:
    """A version of one case, in the order of the versions.

    It has its contrast with the baseline, and its contrast with the previous version that was measured.
    """

    arm: ArmResult
    contrast: Contrast | None
    step: Contrast | None

    @property
    def at_one(self) -> bool:
        """Whether this is the baseline or, if that has no time, the oldest version that has one."""
        return self.arm.median_ms is not None and self.step is None and not (self.contrast and self.contrast.ratio)


def points(comparison: Comparison) -> dict[Case, list[TrendPoint]]:
    to_baseline = by_candidate(comparison.contrasts) | by_candidate(comparison.references)
    before = {one.pair.arms[1]: one for one in comparison.neighbours}
    places = {version: place for place, version in enumerate(in_order(comparison.plan.versions))}
    found: dict[Case, list[TrendPoint]] = {}
    for arm in comparison.arms:
        if arm.version in places:
            found.setdefault(arm.case, []).append(TrendPoint(arm, to_baseline.get(arm.key), before.get(arm.key)))
    return {case: sorted(of_case, key=lambda one: places[one.arm.version]) for case, of_case in found.items()}


def layout(comparison: Comparison, width: int) -> RenderableType:
    notes = Notes()
    parts: list[RenderableType] = [_head(comparison), *table.render_warnings(comparison)]
    for case, of_case in points(comparison).items():
        parts += [Text(), _grid(case, of_case, width, notes)]
        if told := instead(comparison, of_case):
            parts.append(safe_text(f" {told}"))
        parts.append(safe_text(f" {summary(of_case)}"))
    if any(one.pair.kind == "case" for one in comparison.contrasts):
        parts += [Text(), safe_text("contrasts inside a version: --table verdicts", style="dim")]
    return Group(*parts, *table.below(notes.lines(comparison.plan.alpha)))


def _head(comparison: Comparison) -> Text:
    baseline = comparison.plan.versions[0]
    lines = (
        safe_text(f"tfcompare run {comparison.plan.run}", style="bold"),
        safe_text(table.facts(comparison), style="dim"),
        safe_text(LEGEND.format(baseline=baseline), style="dim"),
    )
    return Text("\n").join(lines)


def instead(comparison: Comparison, of_case: Sequence[TrendPoint]) -> str:
    """Return a line that names the version ratios refer to if the baseline has no time, or ''."""
    baseline = comparison.plan.versions[0]
    other = next(
        (one.contrast.pair.arms[0].version for one in of_case if one.contrast and one.contrast.ratio), baseline
    )
    return f"ratios are to {other}: {baseline} has no time." if other != baseline else ""


def _grid(case: Case, of_case: Sequence[TrendPoint], width: int, notes: Notes) -> Grid:
    rows = [_cells(point, notes) for point in of_case]
    if width < WIDE:
        rows = [(*row[:3], *row[4:]) for row in rows]
    headers = ["version", "time", "ratio", *(["interval"] if width >= WIDE else []), "", "verdict", "step"]
    place = headers.index("")
    widths = [max(len(headers[at]), *(len(str(row[at])) for row in rows)) for at in range(len(headers)) if at != place]
    scale = RatioScale.over(map(_span, of_case), cells_for(width, widths))
    headers[place] = scale.header()
    title = safe_text(case.workload, style="bold").append_text(
        safe_text(f"  {case.params_text}" if case.params else "", style="not bold dim")
    )
    right = (False, True, True, *([True] if width >= WIDE else []), False, False, False)
    grid = Grid(title=title, headers=headers, right=right, narrowest=NARROWEST)
    for point, row in zip(of_case, rows, strict=True):
        grid.add(*row[:place], _plot(point, scale), *row[place + 1 :])
    return grid


def _cells(point: TrendPoint, notes: Notes) -> tuple[str | Text, ...]:
    arm, contrast = point.arm, point.contrast
    if arm.median_ms is None:
        return arm.version, "", "", "", "", f"{arm.outcome}{notes.mark(arm.reason)}", ""
    time = notes.drifting(arm) + format_time(arm.median_ms)
    if contrast is None or point.at_one:
        late = f"died{notes.mark(arm.reason)}" if arm.outcome == "died" else ""
        return arm.version, time, "", "", "", late, _step(point)
    star = notes.star() if contrast.exploratory else ""
    verdict = Text(
        f"{MARKS[contrast.verdict]} {contrast.verdict}{star}{notes.mark(contrast.reason)}",
        style=STYLES[contrast.verdict],
    )
    value = "" if contrast.ratio is None else ratio(contrast.ratio)
    return arm.version, time, value, interval(contrast), "", verdict, _step(point)


def _step(point: TrendPoint) -> Text:
    step = point.step
    if step is None:
        return Text()
    told = f" {ratio(step.ratio)}" if step.verdict in ("slower", "faster") and step.ratio else ""
    return Text(f"{MARKS[step.verdict]}{told}", style=STYLES[step.verdict])


def _span(point: TrendPoint) -> tuple[float | None, float | None, float | None]:
    if point.at_one or (point.contrast is None and point.arm.median_ms is not None):
        return 1.0, None, None
    one = point.contrast
    return (one.ratio, one.ci_low, one.ci_high) if one else (None, None, None)


def _plot(point: TrendPoint, scale: RatioScale) -> Text:
    verdict = point.contrast.verdict if point.contrast and not point.at_one else None
    return Text(scale.line(*_span(point), verdict), style=STYLES[verdict] if verdict else "")


def steps_that_differ(of_case: Sequence[TrendPoint]) -> list[Contrast]:
    """Return the steps between neighbours that differ."""
    return [one.step for one in of_case if one.step and one.step.verdict in ("slower", "faster")]


def summary(of_case: Sequence[TrendPoint]) -> str:
    """Summarize which neighbours differ, naming those that differ most."""
    steps = [one.step for one in of_case if one.step]
    found = steps_that_differ(of_case)
    untold = sum(step.verdict == "inconclusive" for step in steps)
    rest = f"; {untold} are not told" if untold else ""
    if not steps:
        return "no neighbours to compare."
    if not found:
        return f"no step of {len(steps)} between neighbours is shown to differ{rest}."
    named = sorted(found, key=lambda one: -max(one.ratio or 1.0, 1 / (one.ratio or 1.0)))[:MOST_NAMED]
    told = [f"{one.pair.arms[1].version} ({ratio(one.ratio or 1.0)} {one.verdict})" for one in found if one in named]
    more = f", and {len(found) - len(named)} more" if len(found) > len(named) else ""
    return f"steps that differ: {len(found)} of {len(steps)}: {', '.join(told)}{more}{rest}."


def as_json(comparison: Comparison) -> str:
    """Return the `tfcompare.trend/1` object as JSON, which is part of the interface."""
    return json.dumps(as_object(comparison), indent=2)


def as_object(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run_object(comparison),
        "baseline": comparison.plan.versions[0],
        "trends": [
            {
                "workload": case.workload,
                "params": dict(case.params),
                "versions": [_point_object(point) for point in of_case],
                "steps": [_step_object(point.step) for point in of_case if point.step],
            }
            for case, of_case in points(comparison).items()
        ],
        "warnings": [*comparison.broken, *comparison.warnings],
    }


def _step_object(step: Contrast) -> dict[str, Any]:
    return {
        "earlier": step.pair.arms[0].version,
        "later": step.pair.arms[1].version,
        "verdict": step.verdict,
        "ratio": step.ratio,
        "ci_low": step.ci_low,
        "ci_high": step.ci_high,
        "rounds": step.rounds,
        "reason": step.reason or None,
    }


def _point_object(point: TrendPoint) -> dict[str, Any]:
    contrast = point.contrast
    return {
        "version": point.arm.version,
        "outcome": point.arm.outcome,
        "reason": point.arm.reason or None,
        "median_ms": point.arm.median_ms,
        "ratio": contrast.ratio if contrast else None,
        "ci_low": contrast.ci_low if contrast else None,
        "ci_high": contrast.ci_high if contrast else None,
        "verdict": contrast.verdict if contrast else None,
    }
