"""Many versions as a trend: one line per version, compared with the baseline and with the version before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.model import ArmResult, Case, Comparison, Evaluation
from orchestrator.plan.pairs import in_order
from orchestrator.reports import table
from orchestrator.reports.columns import COLUMNS, MARKS, STYLES, Notes, ratio
from orchestrator.reports.goes_with import find_companions
from orchestrator.reports.grid import Grid, format_title
from orchestrator.reports.json import run_object
from orchestrator.reports.ratio_table import RatioColumn, RatioPoint, ratio_table
from orchestrator.reports.reasons import UNCERTAIN, count_uncertain
from orchestrator.reports.summary import by_candidate
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal import strict_json
from orchestrator.terminal.strict_json import OF_RATIO, pick
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.trend/1"
# A terminal of at least this width has room for intervals next to the plot.
WIDE = 92
MOST_NAMED = 5
LEGEND = (
    "plot: ratio to {baseline} with its interval, on a log scale · step: ratio to the version before, by round; "
    "▲ slower ▼ faster △ ▽ slightly = same ? inconclusive"
)


@dataclass(frozen=True)
class TrendPoint:
    """A version of one case, in the order of the versions.

    It has its comparison with the baseline, and its comparison with the previous version that was measured.
    """

    arm: ArmResult
    comparison: Comparison | None
    step: Comparison | None

    @property
    def at_one(self) -> bool:
        """Whether this is the baseline or, if that has no time, the oldest version that has one."""
        return self.arm.time_ms is not None and self.step is None and not (self.comparison and self.comparison.ratio)

    @property
    def comparison_to_show(self) -> Comparison | None:
        """The comparison to show in words; a version without a time and the one at 1 have none."""
        return None if self.arm.time_ms is None or self.at_one else self.comparison


def points(evaluation: Evaluation) -> dict[Case, list[TrendPoint]]:
    to_baseline = by_candidate(evaluation.comparisons) | by_candidate(evaluation.references)
    before = {comparison.pair.arms[1]: comparison for comparison in evaluation.neighbours}
    positions = {target: position for position, target in enumerate(in_order(evaluation.plan.targets))}
    by_case: dict[Case, list[TrendPoint]] = {}
    for arm in evaluation.arms:
        if arm.target in positions:
            by_case.setdefault(arm.case, []).append(TrendPoint(arm, to_baseline.get(arm.key), before.get(arm.key)))
    return {case: sorted(of_case, key=lambda point: positions[point.arm.target]) for case, of_case in by_case.items()}


def layout(evaluation: Evaluation, width: int) -> RenderableType:
    notes = Notes()
    parts: list[RenderableType] = [_head(evaluation), *table.render_warnings(evaluation)]
    for case, of_case in points(evaluation).items():
        parts += [Text(), _grid(case, of_case, width, notes)]
        if line := instead(evaluation, of_case):
            parts.append(safe_text(f" {line}"))
        parts.append(safe_text(f" {summarize_trend(of_case)}"))
    if any(comparison.pair.kind == "case" for comparison in evaluation.comparisons):
        parts += [Text(), safe_text("comparisons inside a version: --table details", style="dim")]
    plan = evaluation.plan
    below = (
        *table.render_companions(find_companions(evaluation)),
        *notes.lines(plan.alpha),
        *table.render_differences(evaluation),
        safe_text(LEGEND.format(baseline=plan.targets[0]), style="dim"),
        safe_text(f"margin {format_margin(plan.margin)} · {table.describe_errors(plan)}", style="dim"),
        safe_text(table.WHOLE_REPORT, style="dim"),
    )
    return Group(*parts, *table.below(below))


def _head(evaluation: Evaluation) -> Text:
    lines = (
        safe_text(f"tfcompare run {evaluation.plan.run}", style="bold"),
        safe_text(table.describe_place(evaluation), style="dim"),
        *(safe_text(line, style="dim") for line in table.describe_hosts(evaluation.manifest, table.MOST_CASES)),
    )
    return Text("\n").join(lines)


def instead(evaluation: Evaluation, of_case: Sequence[TrendPoint]) -> str:
    """Return a line that names the version ratios refer to if the baseline has no time, or ''."""
    baseline = evaluation.plan.targets[0]
    other = next(
        (point.comparison.pair.arms[0].target for point in of_case if point.comparison and point.comparison.ratio),
        baseline,
    )
    return f"ratios are to {other}: {baseline} has no time." if other != baseline else ""


def _grid(case: Case, of_case: Sequence[TrendPoint], width: int, notes: Notes) -> Grid:
    def column(name: str, *, since: int = 0) -> RatioColumn[TrendPoint]:
        """Return a column of the verdicts' table."""
        shared = COLUMNS[name]
        return RatioColumn(
            header=shared.header,
            cell=lambda point: shared.cell(point.arm, point.comparison_to_show, notes),
            right=shared.justify == "right",
            since=since,
        )

    return ratio_table(
        format_title(case.workload, case.params_text),
        of_case,
        width,
        before=(
            RatioColumn(header="target", cell=lambda point: str(point.arm.target)),
            column("time"),
            column("ratio"),
            column("interval", since=WIDE),
        ),
        point=_ratio_point,
        after=(
            RatioColumn(header="verdict", cell=lambda point: _verdict(point, notes)),
            RatioColumn(header="step", cell=_step),
        ),
    )


def _verdict(point: TrendPoint, notes: Notes) -> str | Text:
    if point.arm.time_ms is None:
        return f"{point.arm.outcome}{notes.mark(point.arm.reason)}"
    return COLUMNS["verdict"].cell(point.arm, point.comparison_to_show, notes)


def _step(point: TrendPoint) -> Text:
    step = point.step
    if step is None or point.arm.time_ms is None:
        return Text()
    differs = step.verdict in ("slower", "faster") or step.size == "slight"
    size = f" {ratio(step.ratio)}" if differs and step.ratio else ""
    return Text(f"{MARKS[step.shown_verdict]}{size}", style=STYLES[step.shown_verdict])


def _ratio_point(point: TrendPoint) -> RatioPoint:
    comparison = point.comparison
    if point.at_one or (comparison is None and point.arm.time_ms is not None):
        return RatioPoint(1.0)
    if comparison is None:
        return RatioPoint()
    return RatioPoint(comparison.ratio, comparison.ci_low, comparison.ci_high, comparison.shown_verdict)


def summarize_trend(of_case: Sequence[TrendPoint]) -> str:
    """Summarize which neighbours differ, naming those that differ most."""
    steps = [point.step for point in of_case if point.step]
    # Only the steps that are certain among all comparisons of the report count.
    differing = [step for step in steps if step.report_verdict in ("slower", "faster")]
    undecided = sum(step.verdict == "inconclusive" for step in steps)
    rest = f"; {undecided} {'is' if undecided == 1 else 'are'} inconclusive" if undecided else ""
    if uncertain := count_uncertain(steps):
        rest = f"; {uncertain} {UNCERTAIN}{rest}"
    if not steps:
        return "no neighbours to compare."
    if not differing:
        return f"no step of {len(steps)} between neighbours is shown to differ{rest}."
    named = sorted(differing, key=lambda step: -max(step.ratio or 1.0, 1 / (step.ratio or 1.0)))[:MOST_NAMED]
    listing = [
        f"{step.pair.arms[1].target} ({ratio(step.ratio or 1.0)} {step.verdict})" for step in differing if step in named
    ]
    more = f", and {len(differing) - len(named)} more" if len(differing) > len(named) else ""
    return f"steps that differ: {len(differing)} of {len(steps)}: {', '.join(listing)}{more}{rest}."


def as_json(evaluation: Evaluation) -> str:
    """Return the `tfcompare.trend/1` object as JSON, which is part of the interface."""
    return strict_json.dump(trend_as_object(evaluation), indent=2)


def trend_as_object(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run_object(evaluation),
        "baseline": str(evaluation.plan.targets[0]),
        "trends": [
            {
                **pick(case, "workload params"),
                "targets": [
                    {
                        **pick(point.arm, "target outcome reason? time_s=time_ms"),
                        **pick(point.comparison, f"{OF_RATIO} verdict size"),
                    }
                    for point in of_case
                ],
                "steps": [
                    {
                        "earlier": str(point.step.pair.arms[0].target),
                        "later": str(point.step.pair.arms[1].target),
                        **pick(point.step, f"verdict size {OF_RATIO} rounds reason?"),
                    }
                    for point in of_case
                    if point.step
                ],
            }
            for case, of_case in points(evaluation).items()
        ],
        "warnings": [*evaluation.broken, *evaluation.warnings],
    }
