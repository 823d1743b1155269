"""The comparison at a glance: a row per case, a column per version, worst first; undecided cases are only counted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.model import (
    ArmKey,
    ArmResult,
    CasePair,
    Comparison,
    Evaluation,
    MeanRatio,
    Metric,
    Plan,
    ShownVerdict,
    Target,
)
from orchestrator.reports.case_names import make_pair_namer, short_names
from orchestrator.reports.columns import (
    ABOUT_SMALL_MARKS,
    LONGEST,
    MARKS,
    MEASURES,
    STAR,
    STYLES,
    WAVE,
    describe_rounds_so_far,
    format_ratio,
    mark_verdict,
    ratio,
)
from orchestrator.reports.cpu_times import describe_cpu_times
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.grid import Grid
from orchestrator.reports.magnitudes import show_estimate, show_magnitude
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.reasons import describe_reasons
from orchestrator.reports.steps import as_arms_of_steps, comparisons_of_steps
from orchestrator.reports.summary import by_candidate, sentences
from orchestrator.reports.table import (
    MOST_CASES,
    WHOLE_REPORT,
    describe_errors,
    describe_hosts,
    describe_place,
    note_what_is_left_out,
    render_differences,
    render_losses,
    render_warnings,
)
from orchestrator.stats.looks import FEWEST_ROUNDS
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.text import clip, render_plain, safe_text

# From this many versions on, cells hold a mark and a ratio only.
MANY_VERSIONS = 6
INDENT = "  "
# How a row is grouped, in this order: by the first of these verdicts that one of its versions has.
GROUPS: Mapping[str, tuple[ShownVerdict, ...]] = {
    "slower": ("slower",), "faster": ("faster",), "same": ("slightly slower", "slightly faster", "same"),
    "not decided": ("inconclusive",),
}  # fmt: skip
OPEN, ALONE = "not decided", "not compared"
NO_MEAN = "no geometric mean: no two cases have an interval in every version, from the same rounds"


@dataclass(frozen=True)
class CaseRow:
    """A case, or a pair of cases: its name, the time of its baseline, and what there is for each version."""

    name: str
    time_ms: float | None
    arms: Mapping[Target, ArmResult]
    comparisons: Mapping[Target, Comparison]
    # Whether the calls of the baseline get slower or quicker to the end.
    drifts: bool = False
    # How the figure of an arm is printed, which is a time unless the row is of another metric.
    show: Callable[[float], str] = format_time
    metric: Metric = "time"

    @property
    def time(self) -> str:
        """The time of the baseline, with the wave if its calls do not settle."""
        return "" if self.time_ms is None else f"{f'{WAVE} ' if self.drifts else ''}{self.show(self.time_ms)}"

    def mark(self, target: Target) -> str:
        """Return the star and the wave that follow the ratio of a version, if it has them."""
        comparison, arm = self.comparisons.get(target), self.arms.get(target)
        return (STAR if comparison and comparison.exploratory else "") + (f" {WAVE}" if arm and arm.drift else "")

    @property
    def group(self) -> str:
        known = (each for each in self.comparisons.values() if each.estimate is not None or each.seen_ratio is not None)
        verdicts = {comparison.shown_verdict for comparison in known}
        return next((name for name, own in GROUPS.items() if verdicts.intersection(own)), ALONE)

    def has_progress(self) -> bool:
        """Return whether a comparison has rounds that are too few for a verdict."""
        return any(comparison.missing and comparison.seen_ratio is not None for comparison in self.comparisons.values())

    @property
    def size(self) -> float:
        """The largest distance from no difference, of those that decide the group."""
        deciding = GROUPS.get(self.group, ())
        return max((each.distance for each in self.comparisons.values() if each.shown_verdict in deciding), default=0.0)


@dataclass(frozen=True)
class RowGroup:
    """The rows that have a verdict in common; without one, nothing could be compared."""

    title: str
    verdict: ShownVerdict | None
    rows: Sequence[CaseRow]

    @property
    def mark(self) -> str:
        return MARKS[self.verdict] if self.verdict else "-"


def group_rows(rows: Iterable[CaseRow], *, worst_first: bool) -> list[RowGroup]:
    by_group: dict[str, list[CaseRow]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    groups = []
    for title in (*GROUPS, ALONE):
        own = by_group.get(title, [])
        if own:
            ordered = sorted(own, key=lambda row: -row.size) if worst_first else own
            groups.append(RowGroup(title, GROUPS[title][-1] if title in GROUPS else None, ordered))
    return groups


def render_matrix(evaluation: Evaluation, arrangement: Arrangement | None = None) -> str:
    return render_plain(lambda width: layout(evaluation, width, arrangement))


def layout(evaluation: Evaluation, width: int, arrangement: Arrangement | None = None) -> RenderableType:
    """Lay out the matrix; versions that do not fit continue in further blocks with the same rows."""
    arrangement = arrangement or Arrangement()
    targets = evaluation.plan.targets
    across, inside = across_targets(evaluation, arrangement), inside_targets(evaluation, arrangement)
    parts: list[RenderableType] = [_head(evaluation)]
    if arrangement.only:
        parts.append(safe_text(note_what_is_left_out(evaluation, arrangement), style="dim"))
    means = {} if arrangement.only else means_of(evaluation)
    worst_first = arrangement.sort == Arrangement.sort
    rows = [*across, *rows_of_steps(evaluation, arrangement)]
    parts += draw_blocks(CaseBlock(str(targets[0]), rows, means, worst_first), targets[1:], width)
    parts += draw_blocks(CaseBlock("inside each target", inside, {}, worst_first), targets, width)
    below: list[RenderableType] = [
        *_reasons(evaluation),
        *render_losses(evaluation),
        *render_differences(evaluation),
        *render_warnings(evaluation),
        _legend(
            evaluation,
            [
                *describe_marks([*rows, *inside], evaluation.plan.alpha),
                *([] if arrangement.only else describe_means(across, means)),
            ],
        ),
    ]
    return Group(*parts, Text(), *below)


def across_targets(evaluation: Evaluation, arrangement: Arrangement) -> list[CaseRow]:
    """Return a row per case that is compared across versions."""
    comparisons = by_candidate(each for each in evaluation.comparisons if each.pair.metric == "time")
    return _rows(evaluation, arrangement.arms(evaluation), comparisons)


def rows_of_metric(evaluation: Evaluation, metric: Metric) -> list[CaseRow]:
    """Return a row per case that has a figure of this metric, which is compared in addition to times."""
    spec, comparisons = METRICS[metric], {each.pair.arms[1]: each for each in evaluation.metrics.get(metric, ())}
    compared = {arm.case for arm in comparisons}
    known = {arm.case.label for arm in evaluation.arms if metric in arm.figures}
    arms = [
        replace(arm, figures={"time": arm.figures[metric]} if metric in arm.figures else {}, drift=None)
        for arm in evaluation.arms
        if arm.case.label in compared & known
    ]
    rows = _rows(evaluation, arms, comparisons)
    name = spec.about if spec.of_targets else ""
    return [replace(row, name=name or row.name, show=spec.show, metric=metric) for row in rows]


def rows_of_steps(evaluation: Evaluation, arrangement: Arrangement) -> list[CaseRow]:
    """Return a row for the steps of a program, if it has any."""
    arms = as_arms_of_steps(arrangement.arms(evaluation))
    return [
        replace(row, name=f"{row.name}, {MEASURES['step']}")
        for row in _rows(evaluation, arms, comparisons_of_steps(evaluation))
    ]


def _rows(evaluation: Evaluation, arms: Iterable[ArmResult], comparisons: Mapping[ArmKey, Comparison]) -> list[CaseRow]:
    names = short_names(arm.case for arm in evaluation.arms)
    rows: dict[str, dict[Target, ArmResult]] = {}
    for arm in arms:
        rows.setdefault(arm.case.label, {})[arm.target] = arm
    baseline = evaluation.plan.targets[0]
    return [
        CaseRow(
            names[label],
            of_case[baseline].time_ms if baseline in of_case else None,
            of_case,
            {target: comparisons[arm.key] for target, arm in of_case.items() if arm.key in comparisons},
            drifts=baseline in of_case and bool(of_case[baseline].drift),
        )
        for label, of_case in rows.items()
    ]


def inside_targets(evaluation: Evaluation, arrangement: Arrangement) -> list[CaseRow]:
    """Return a row per pair of cases that is compared inside versions."""
    own = [each for each in arrangement.inside(evaluation) if isinstance(each.pair, CasePair)]
    name_of = make_pair_namer(own)
    arms = {arm.key: arm for arm in evaluation.arms}
    rows: dict[str, dict[Target, Comparison]] = {}
    for each in own:
        rows.setdefault(name_of(each), {})[each.pair.arms[1].target] = each
    return [
        CaseRow(name, None, {target: arms[each.pair.arms[1]] for target, each in of_row.items()}, of_row)
        for name, of_row in rows.items()
    ]


def means_of(evaluation: Evaluation, metric: Metric = "time") -> dict[Target, MeanRatio]:
    """Return the mean ratio of each version over the cases that all versions have."""
    return {mean.candidate: mean for mean in evaluation.means if mean.metric == metric}


def name_means(means: Mapping[Target, MeanRatio]) -> str:
    """Return the name of the row of means: all are over the same cases."""
    return f"geometric mean of {next(iter(means.values())).cases} cases"


def describe_means(rows: Sequence[CaseRow], means: Mapping[Target, MeanRatio]) -> list[str]:
    """Return which rounds the means are of, if cases have others as well, or why there are no means."""
    sure = [[each for each in row.comparisons.values() if each.ci_low is not None] for row in rows]
    if not means:
        return [NO_MEAN] if sum(map(bool, sure)) > 1 else []
    fewest, most = (find(mean.rounds for mean in means.values()) for find in (min, max))
    if all(comparison.rounds <= fewest for of_row in sure for comparison in of_row):
        return []
    counts = str(fewest) if fewest == most else f"{fewest} to {most}"
    if fewest < FEWEST_ROUNDS:
        return [f"geometric mean: some of its cases have only {counts} rounds"]
    return [f"geometric mean: from the {counts} rounds that all of its cases have"]


def _head(evaluation: Evaluation) -> Text:
    return Text("\n").join(
        [
            safe_text(f"tfcompare run {evaluation.plan.run}", style="bold"),
            safe_text(describe_place(evaluation), style="dim"),
            *(safe_text(line, style="dim") for line in describe_hosts(evaluation.manifest, MOST_CASES)),
            *map(safe_text, sentences(evaluation)),
            *map(safe_text, metric_sentences(evaluation)),
            *map(safe_text, describe_cpu_times(evaluation)),
        ]
    )


@dataclass(frozen=True)
class CaseBlock:
    """What is drawn under one another: rows, and the mean of each version."""

    header: str
    rows: Sequence[CaseRow]
    means: Mapping[Target, MeanRatio]
    # Unless the user asked for another order.
    worst_first: bool
    metric: Metric = "time"

    @property
    def has_times(self) -> bool:
        return any(row.time_ms is not None for row in self.rows)

    def draw(self, targets: Sequence[Target], *, short: bool) -> Grid:
        names = [row.name for row in self.rows]
        words = [word for name in names for word in name.split()]
        times = [self.header] if self.has_times else []
        grid = Grid(
            title=Text() if self.has_times else safe_text(self.header, style="bold"),
            headers=("", *times, *map(str, targets)),
            right=(False, *(True for _ in times), *(False for _ in targets)),
            # A word never breaks.
            narrowest=max((len(INDENT) + len(word) for word in words), default=1),
        )
        groups = group_rows(self.rows, worst_first=self.worst_first)
        decided = any(group.title not in (OPEN, ALONE) for group in groups)
        for group in groups:
            style = STYLES[group.verdict] if group.verdict else ""
            title = describe_verdict(self.metric, group.title)
            grid.add(Text(f"{group.mark} {title} ({len(group.rows)})", style=style))
            # Undecided cases hide nothing where there is nothing else to see.
            for row in filter(CaseRow.has_progress, group.rows) if group.title == OPEN and decided else group.rows:
                cells = [_cell(row, target, short=short) for target in targets]
                grid.add(INDENT + row.name, *([row.time] if self.has_times else []), *cells)
        self._add_means(grid, targets, short=short)
        return grid

    def _add_means(self, grid: Grid, targets: Sequence[Target], *, short: bool) -> None:
        means = [self.means.get(target) for target in targets]
        if any(means):
            grid.end_section()
            figures = [mean and (ratio(mean.ratio) if short else format_ratio(mean)) for mean in means]
            cells = [f"  {figure}" if figure else "" for figure in figures]
            grid.add(name_means(self.means), *([""] if self.has_times else []), *cells)


def _cell(row: CaseRow, target: Target, *, short: bool) -> str | Text:
    comparison, arm = row.comparisons.get(target), row.arms.get(target)
    if comparison and comparison.missing and comparison.seen_ratio is not None:
        figures = f"{MARKS['inconclusive']} {ratio(comparison.seen_ratio)}{row.mark(target)}"
        return Text(
            figures if short else f"{figures} ({describe_rounds_so_far(comparison)})", style=STYLES["inconclusive"]
        )
    if comparison is None or comparison.estimate is None:
        if arm and arm.outcome != "measured":
            return arm.outcome
        # There is no ratio without a baseline.
        return f"  {row.show(arm.time_ms)}" if arm and arm.time_ms else ""
    verdict = comparison.shown_verdict
    figure = (show_estimate if short else show_magnitude)(comparison, row.metric)
    return Text(f"{mark_verdict(comparison)} {figure}{row.mark(target)}", style=STYLES[verdict])


def draw_blocks(block: CaseBlock, targets: Sequence[Target], width: int) -> Iterator[RenderableType]:
    """Yield as many grids as it takes for all versions to fit into the width, each with as many as fit."""
    if not block.rows:
        return
    left = [target for target in targets if any(target in row.comparisons or target in row.arms for row in block.rows)]
    short = len(left) >= MANY_VERSIONS
    while left:
        count = len(left)
        while count > 1 and block.draw(left[:count], short=short).least_width > width:
            count -= 1
        # A block without a title begins with the empty line of the title.
        if not block.has_times:
            yield Text()
        yield block.draw(left[:count], short=short)
        left = left[count:]


def _reasons(evaluation: Evaluation) -> Iterator[Text]:
    for line in describe_reasons(evaluation):
        yield safe_text(clip(line, LONGEST), style="dim")


def _legend(evaluation: Evaluation, marks: Sequence[str]) -> Text:
    plan = evaluation.plan
    shown = {comparison.shown_verdict for comparison in evaluation.comparisons}
    lines = [
        "  ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items() if verdict in shown),
        ABOUT_SMALL_MARKS if any(comparison.size == "clear" for comparison in evaluation.comparisons) else "",
        *marks,
        f"{'CPU time' if plan.judge == 'cpu' else 'time'}: {_unit(plan)} in {plan.targets[0]} · "
        "ratio: relative to it, paired by round, with its interval",
        f"margin {format_margin(plan.margin)} · {describe_errors(plan)}",
        WHOLE_REPORT,
        "all comparisons with times and reasons: --table details",
    ]
    return Text("\n").join(safe_text(line, style="dim") for line in lines if line)


def describe_marks(rows: Iterable[CaseRow], alpha: float) -> list[str]:
    """Return what the wave and the star mean, if these rows have them."""
    shown = "".join(f"{row.time}{row.mark(target)}" for row in rows for target in row.arms)
    meanings = {
        WAVE: "its calls do not reach a steady state",
        STAR: f"exploratory: measured after the error of {alpha * 100:g} % was spent; a new run can confirm it",
    }
    return [f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in shown]


def _unit(plan: Plan) -> str:
    return "of the whole program" if plan.program else "per step"
