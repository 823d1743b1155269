"""The sections of the cases, each with a table, plots that are described in words, and the figures behind them."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, TypeVar

from markupsafe import Markup

from orchestrator.model import ArmKey, ArmResult, Case, Comparison, Evaluation, Plan, Replicate, TargetPair
from orchestrator.plan.pairs import find_pairing, in_order, is_trend
from orchestrator.reports.columns import MEASURES, format_ratio, ratio
from orchestrator.reports.html import charts
from orchestrator.reports.html.calls import Course
from orchestrator.reports.html.charts import DrawnRatio, DrawnStep, DrawnTimes
from orchestrator.reports.html.escape import round_figure
from orchestrator.reports.html.rows import Names, TableCell, TableColumn, TableRow, arm_row
from orchestrator.reports.summary import by_candidate
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.durations import format_time

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)

COLUMNS = (
    TableColumn("target", "Target"),
    TableColumn("rounds", "Rounds", True),
    TableColumn("build", "Build", True),
    TableColumn("first", "First call", True),
    TableColumn("second", "Second call", True),
    TableColumn("time", "Time per step", True),
    TableColumn("range", "Replicates from – to", True),
    TableColumn("ratio", "Ratio", True),
    TableColumn("interval", "Interval", True),
    TableColumn("verdict", "Verdict"),
)


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot; `label` is for people who cannot see it, and `caption` explains how to read it."""

    kind: str
    title: str
    label: str
    caption: str
    drawing: Markup


@dataclass(frozen=True, kw_only=True)
class CaseSection:
    anchor: str
    workload: str
    name: str
    label: str
    rows: tuple[TableRow, ...]
    plots: tuple[Plot, ...]
    data: Mapping[str, Any]

    @property
    def tags(self) -> tuple[TableRow, ...]:
        """The rows whose verdicts are shown in the section's head."""
        return tuple(row for row in self.rows if row.verdict.word not in ("baseline", "not compared"))


@dataclass(frozen=True)
class CaseResults:
    """The part of a run that belongs to one case: its arms in order, and the data of each."""

    case: Case
    arms: Sequence[ArmResult]
    replicates: Sequence[Sequence[Replicate]]
    courses: Sequence[Course | None]
    comparisons: Sequence[Comparison]
    neighbours: Sequence[Comparison] = ()
    references: Sequence[Comparison] = ()


def sections(
    evaluation: Evaluation, replicates: Sequence[Replicate], courses: Mapping[ArmKey, Course], names: Names
) -> list[CaseSection]:
    of_arm = _group(replicates, lambda replicate: replicate.arm)
    across = [comparison for comparison in evaluation.comparisons if isinstance(comparison.pair, TargetPair)]
    comparisons, neighbours, references = (
        _group(family, lambda comparison: comparison.pair.arms[1].case)
        for family in (across, evaluation.neighbours, evaluation.references)
    )
    # This goes through all pairs of the plan, so it is done only once.
    compared_with = name_baseline(evaluation.plan)
    return [
        _section(
            evaluation,
            CaseResults(
                names.cases[label],
                arms,
                [sorted(of_arm.get(arm.key, ()), key=lambda replicate: replicate.round) for arm in arms],
                [courses.get(arm.key) for arm in arms],
                comparisons.get(label, ()),
                neighbours.get(label, ()),
                references.get(label, ()),
            ),
            names,
            compared_with,
        )
        for label, arms in _group(evaluation.arms, lambda arm: arm.case.label).items()
    ]


def _group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _section(evaluation: Evaluation, results: CaseResults, names: Names, compared_with: str) -> CaseSection:
    baseline = evaluation.plan.targets[0]
    judged = by_candidate(results.comparisons)
    rows = [arm_row(arm, judged.get(arm.key), baseline, names) for arm in results.arms]
    return CaseSection(
        anchor=names.anchors[results.case.label],
        workload=results.case.workload,
        name=names.own[results.case],
        label=results.case.params_text,
        rows=tuple(_with_range(row, of_arm) for row, of_arm in zip(rows, results.replicates, strict=True)),
        plots=tuple(
            plot
            for plot in (
                *_trend(evaluation, results),
                _spread(evaluation, results),
                _forest(evaluation, results, compared_with),
                _course(results),
                _phases(results),
            )
            if plot
        ),
        data=_figures(results),
    )


def _with_range(row: TableRow, replicates: Sequence[Replicate]) -> TableRow:
    times = [replicate.time_ns / 1e6 for replicate in replicates]
    cell = (
        TableCell(f"{format_time(min(times))} – {format_time(max(times))}", round_figure(min(times)))
        if times
        else TableCell()
    )
    return replace(row, cells={**row.cells, "range": cell})


def _trend(evaluation: Evaluation, results: CaseResults) -> tuple[Plot, ...]:
    """Return the plots for many versions: ratio and time from one version to the next, and where neighbours differ."""
    if not is_trend(evaluation.plan) or not any(arm.time_ms is not None for arm in results.arms):
        return ()
    baseline = results.references[0].pair.arms[0].target if results.references else evaluation.plan.targets[0]
    steps = [step for step in results.neighbours if step.verdict in ("slower", "faster")]
    descriptions = [
        f"{step.pair.arms[1].target} against {step.pair.arms[0].target}: {ratio(step.ratio or 1.0)}, {step.verdict}"
        for step in steps
    ]
    medians = [f"{arm.target}: {format_time(arm.time_ms)}" for arm in results.arms if arm.time_ms is not None]
    times = {each.name: each for each in _times(results)}
    return (
        Plot(
            kind="trend",
            title=f"Trend of the ratio to {baseline}",
            label=f"Ratio to {baseline} by version. Neighbours that differ: {'; '.join(descriptions) or 'none'}.",
            caption="Versions in their order, ratios with their intervals on a log scale. A dashed line lies between "
            "two neighbours that differ from each other, compared round by round"
            + (f": {len(steps)} of {len(results.neighbours)}." if results.neighbours else "."),
            drawing=charts.draw_trend(
                _ratios_in_order(evaluation, results),
                [
                    DrawnStep(
                        str(step.pair.arms[0].target), str(step.pair.arms[1].target), step.ratio or 1.0, step.verdict
                    )
                    for step in steps
                ],
            ),
        ),
        Plot(
            kind="pace",
            title=f"Trend of the {_name_time(evaluation)}",
            label=f"Median {_name_time(evaluation)} by version. {'; '.join(medians)}.",
            caption="Medians of the replicates, and their quartiles.",
            drawing=charts.draw_pace(
                [times[target] for target in map(str, in_order(evaluation.plan.targets)) if target in times]
            ),
        ),
    )


def _name_time(evaluation: Evaluation) -> str:
    return "CPU time" if evaluation.plan.judge == "cpu" else "time"


def _times(results: CaseResults) -> list[DrawnTimes]:
    drawn = []
    for arm, replicates in zip(results.arms, results.replicates, strict=True):
        times = [max(replicate.time_ns, 1.0) / 1e6 for replicate in replicates]
        told = (
            f"{arm.target}: {len(times)} replicates from {format_time(min(times))} to {format_time(max(times))}, "
            f"median {format_time(median(times))}"
            if times
            else ""
        )
        drawn.append(DrawnTimes(str(arm.target), times, told))
    return drawn


def _spread(evaluation: Evaluation, results: CaseResults) -> Plot | None:
    time, drawn = _name_time(evaluation), _times(results)
    descriptions = [each.told for each in drawn if each.told]
    if not descriptions:
        return None
    return Plot(
        kind="spread",
        title="Replicates" if time == "time" else f"Replicates by {time}",
        label=f"The {time} per step of each replicate. {'; '.join(descriptions)}.",
        caption="A dot is a replicate: the median per step of its calls after the warm-up. In each row the first round "
        "is on top. The bar spans the quartiles, the line is the median.",
        drawing=charts.draw_spread(drawn),
    )


def _forest(evaluation: Evaluation, results: CaseResults, compared_with: str) -> Plot | None:
    plan = evaluation.plan
    timed = [comparison for comparison in results.comparisons if comparison.ratio is not None]
    descriptions = [
        f"{_name_comparison(comparison, plan)}: {format_ratio(comparison)}, {comparison.shown_verdict}"
        for comparison in timed
    ]
    without_ratio = len(results.comparisons) - len(timed)
    margins = dict.fromkeys(format_margin(_margin(evaluation, comparison)) for comparison in timed)
    if not descriptions:
        return None
    return Plot(
        kind="forest",
        title=f"Ratio to {compared_with}",
        label=f"Ratios of {_name_time(evaluation)}s to {compared_with}, with intervals. {'; '.join(descriptions)}.",
        caption="On a log scale; right of 1 is slower. "
        "The line is the interval that the verdict rests on, "
        f"the shaded band the margin of {' and '.join(margins)}."
        + (
            f" {without_ratio} without a ratio {'is' if without_ratio == 1 else 'are'} in the table only."
            if without_ratio
            else ""
        ),
        drawing=charts.draw_forest(
            [
                draw_ratio(comparison, _name_comparison(comparison, plan), _margin(evaluation, comparison))
                for comparison in timed
            ]
        ),
    )


def name_baseline(plan: Plan) -> str:
    """Return what ratios refer to: the first target, unless targets are compared in other pairs."""
    return str(plan.targets[0]) if find_pairing(plan) == "first" else "the other target"


def _course(results: CaseResults) -> Plot | None:
    courses = {str(arm.target): course for arm, course in zip(results.arms, results.courses, strict=True) if course}
    told = {
        target: f"{target}: {course.calls} calls of {course.replicates} replicates, between "
        f"{min(course.middle) - 1:+.1%} and {max(course.middle) - 1:+.1%}"
        for target, course in courses.items()
    }
    if not courses:
        return None
    summed = [f"{course.width} calls of {target}" for target, course in courses.items() if course.width > 1]
    return Plot(
        kind="calls",
        title="Calls over time",
        label="Calls after the warm-up in their order, against the median of their replicate. "
        f"{'; '.join(told.values())}.",
        caption="Wall times of calls after the warm-up in their order, relative to the median of their replicate: the "
        "line is the median over the replicates, the band their quartiles. Warm-up calls are not drawn. "
        + (f"Summed up: a point is the median of {', '.join(summed)}." if summed else "Each point is one call."),
        drawing=charts.draw_calls(courses),
    )


def _phases(results: CaseResults) -> Plot | None:
    descriptions = []
    for arm in results.arms:
        times = [f"{name} {format_time(value)}" for name, value in _phase_times(arm).items() if value is not None]
        if times:
            descriptions.append(f"{arm.target}: {', '.join(times)}")
    if not descriptions:
        return None
    return Plot(
        kind="phases",
        title="Build, first, second and later calls",
        label=f"Where the time of a replicate goes. {'; '.join(descriptions)}.",
        caption="Medians of wall times over the replicates, on a log scale; the first call as a whole, later ones per "
        "step.",
        drawing=charts.draw_phases({str(arm.target): _phase_times(arm) for arm in results.arms}),
    )


def _phase_times(arm: ArmResult) -> dict[str, float | None]:
    return {
        "build": arm.figures.get("build"),
        "first": arm.figures.get("first"),
        "second": arm.second_ms,
        "burst": arm.time_ms if arm.wall_ms is None else arm.wall_ms,
    }


def _margin(evaluation: Evaluation, comparison: Comparison) -> float:
    return evaluation.plan.margin if comparison.pair.margin is None else comparison.pair.margin


def _name_comparison(comparison: Comparison, plan: Plan) -> str:
    """Return a comparison between versions in as few words as possible."""
    pair = comparison.pair
    baseline, target = (arm.target for arm in pair.arms)
    name = str(target) if baseline == plan.targets[0] else f"{target} against {baseline}"
    return name if pair.metric == "time" else f"{name} {MEASURES[pair.metric]}"


def _ratios_in_order(evaluation: Evaluation, results: CaseResults) -> list[DrawnRatio]:
    """Return the versions in order with their ratios; the version that the ratios refer to is at 1."""
    comparisons = (by_candidate(results.comparisons) | by_candidate(results.references)).values()
    timed = {comparison.pair.arms[1].target: comparison for comparison in comparisons if comparison.ratio is not None}
    references = {comparison.pair.arms[0].target for comparison in timed.values()}
    ratios = []
    for target in in_order(evaluation.plan.targets):
        if target in references:
            ratios.append(DrawnRatio(str(target), 1.0, 1.0, 1.0, "same"))
        elif comparison := timed.get(target):
            ratios.append(draw_ratio(comparison, str(target)))
        else:
            ratios.append(DrawnRatio(str(target)))
    return ratios


def draw_ratio(comparison: Comparison, name: str, margin: float = 0.0) -> DrawnRatio:
    figures = (comparison.ratio, comparison.ci_low, comparison.ci_high)
    return DrawnRatio(name, *figures, comparison.shown_verdict, margin)


def _figures(results: CaseResults) -> dict[str, Any]:
    """Return the times of the replicates by round; page.js makes a table of them."""
    of_arms = [
        {replicate.round: round_figure(max(replicate.time_ns, 1.0) / 1e6) for replicate in replicates}
        for replicates in results.replicates
    ]
    numbers = sorted({number for times in of_arms for number in times})
    return {
        "targets": [arm.target for arm in results.arms],
        "numbers": numbers,
        "times": [[times.get(number) for number in numbers] for times in of_arms],
    }
