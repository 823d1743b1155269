"""The comparison as tables for a terminal: one row per version, verdicts as words, colour only in addition."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.model import ArmResult, Comparison, Evaluation, Manifest, Plan
from orchestrator.reports.case_names import make_pair_namer, split_params
from orchestrator.reports.columns import (
    COLUMNS,
    CPU_OF_OPEN,
    LONGEST,
    MEASURES,
    Column,
    Notes,
    choose_columns,
    is_left_to_cpu,
    legend,
    shows_default,
)
from orchestrator.reports.cpu_times import describe_cpu_times
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.goes_with import Companion, describe_companions, find_companions
from orchestrator.reports.grid import Grid, format_title
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.steps import as_arms_of_steps, columns_of_steps, comparisons_of_steps, describe_losses
from orchestrator.reports.summary import by_candidate, sentences
from orchestrator.reports.target_differences import describe_differences
from orchestrator.results.warnings import find_open_times
from orchestrator.stats.comparisons import MOST_CALLED_DIFFERENT
from orchestrator.stats.report_error import MOST_REPORTS_WRONG
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.text import clip, render_plain, safe_text

Row = TypeVar("Row")

# A row's name may wrap down to this width before its columns are laid out in two tables.
NARROWEST_NAME = 8
# A run that was merged from several machines names this many cases of each.
MOST_CASES = 3
# The sentences keep this promise, which differs from that of the rows.
WHOLE_REPORT = f"sentences and --fail-on name equal arms in at most {MOST_REPORTS_WRONG:.0%} of reports"


def render_details(
    evaluation: Evaluation, columns: Sequence[str] | None = None, arrangement: Arrangement | None = None
) -> str:
    return render_plain(lambda width: layout(evaluation, width, columns, arrangement))


def layout(
    evaluation: Evaluation, width: int, columns: Sequence[str] | None = None, arrangement: Arrangement | None = None
) -> RenderableType:
    """Lay out the evaluation.

    `columns` are names that `parse_columns` has parsed. Without any, the usual columns are shown.
    """
    items = any(arm.items for arm in evaluation.arms)
    chosen, notes = choose_columns(width, columns, items=items, judge=evaluation.plan.judge), Notes()
    arrangement = arrangement or Arrangement()
    arms, inside = arrangement.arms(evaluation), arrangement.inside(evaluation)
    cpu = _asks_for_cpu(evaluation, chosen, columns)
    shown = [*chosen, CPU_OF_OPEN] if cpu else chosen
    parts: list[RenderableType] = [_head(evaluation, shown), *render_warnings(evaluation)]
    if arrangement.only:
        parts.append(safe_text(note_what_is_left_out(evaluation, arrangement), style="dim"))
    comparisons = by_candidate(evaluation.comparisons)
    for _, group in groupby(arms, key=lambda arm: arm.case.workload):
        of_workload = list(group)
        undecided = [arm for arm in of_workload if cpu and is_left_to_cpu(comparisons.get(arm.key))]
        draw_arms = partial(_targets_table, evaluation, notes)
        parts.extend(_fit_with_cpu(draw_arms, of_workload, undecided, chosen, width))
    judging = [column for column in chosen if column.of == "comparison"]
    if with_steps := as_arms_of_steps(arms):
        parts += _fit(partial(_steps_table, evaluation, notes, with_steps), columns_of_steps(judging), width)
    undecided_inside = [comparison for comparison in inside if cpu and is_left_to_cpu(comparison)]
    draw_comparisons = partial(_cases_table, evaluation, notes)
    parts.extend(_fit_with_cpu(draw_comparisons, inside, undecided_inside, judging, width))
    closing = (
        *render_companions(find_companions(evaluation)),
        *notes.lines(evaluation.plan.alpha),
        *render_losses(evaluation),
        *render_differences(evaluation),
    )
    return Group(*parts, *below(closing))


def below(notes: Sequence[Text]) -> Sequence[Text]:
    return [Text(), *notes] if notes else []


def describe_measurement(evaluation: Evaluation) -> str:
    """Return where and how a run was measured, and how far it may be wrong, in one line."""
    plan = evaluation.plan
    return f"{describe_place(evaluation)} · margin {format_margin(plan.margin)} · {describe_errors(plan)}"


def describe_place(evaluation: Evaluation) -> str:
    """Say where a run was measured, and how its budget ended it."""
    return " · ".join(filter(None, [describe_machine(evaluation), evaluation.ended_by_budget]))


def describe_machine(evaluation: Evaluation) -> str:
    """Say on what a run was measured and, if not as usual, how datasets were read and which time is judged."""
    plan, host = evaluation.plan, evaluation.manifest.host
    gpus = _name_gpus(str(host.get("gpus") or ""), plan.gpus) if plan.device == "gpu" else ""
    cpu = re.sub(r"\(R\)|\(TM\)| Processor$", "", str(host.get("cpu")))
    place = f"{plan.engine} · {gpus or plan.device} · {cpu}, {host.get('usable_cores')} cores"
    unusual = (
        "datasets untuned" if plan.untuned_datasets else "",
        "XLA code kept" if plan.keeps_xla_code else "",
        "judged by CPU time" if plan.judge == "cpu" else "",
    )
    return " · ".join(filter(None, (place, *unusual)))


def _name_gpus(listed: str, chosen: Sequence[str]) -> str:
    """Return the names of the GPUs of a run, and how many there are of each; a machine lists all that it has."""
    gpus = [gpu for gpu in listed.split("; ") if not chosen or any(key in gpu for key in chosen)]
    counts = Counter(gpu.partition(" (")[0] for gpu in gpus if gpu)
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items())


def describe_hosts(manifest: Manifest, most: int | None = None) -> tuple[str, ...]:
    """Return a line for each machine of a run that has several: what it is, and which cases it measured.

    All cases are named, unless at most this many should be.
    """
    if len({each.host.get("id") for each in manifest.hosts}) < 2:
        return ()
    return tuple(
        f"host {each.host.get('id')} ({each.host.get('cpu')}, {each.host.get('usable_cores')} cores): "
        f"{name_some(each.cases, most or len(each.cases), 'case')}"
        for each in manifest.hosts
    )


def describe_errors(plan: Plan) -> str:
    """Say how often the verdicts and intervals of rows are wrong, over all looks at a run."""
    return (
        f"rows: at most {MOST_CALLED_DIFFERENT:.1%} of equal arms are called slower or faster · "
        f"intervals hold in at least {1 - plan.alpha:.0%} of runs"
    )


def _head(evaluation: Evaluation, columns: Sequence[Column]) -> Text:
    lines = (
        safe_text(f"tfcompare run {evaluation.plan.run}", style="bold"),
        safe_text(describe_measurement(evaluation), style="dim"),
        safe_text(WHOLE_REPORT, style="dim"),
        *(safe_text(line, style="dim") for line in describe_hosts(evaluation.manifest)),
        safe_text(legend(columns, evaluation.plan.judge), style="dim"),
        *map(safe_text, sentences(evaluation)),
        *map(safe_text, metric_sentences(evaluation)),
        *map(safe_text, describe_cpu_times(evaluation)),
    )
    return Text("\n").join(line for line in lines if line)


def note_what_is_left_out(evaluation: Evaluation, arrangement: Arrangement) -> str:
    arms, inside = arrangement.arms(evaluation), arrangement.inside(evaluation)
    cases = len({arm.case for arm in evaluation.arms})
    selected = len({arm.case for arm in arms})
    only = f"--only {','.join(arrangement.only)}"
    if not arms and not inside:
        return f"{only}: nothing; without it there are {cases} cases"
    return f"{only}: {selected} of {cases} cases, and {len(inside)} comparisons inside a version"


def render_warnings(evaluation: Evaluation) -> Iterable[RenderableType]:
    for text in (*evaluation.broken, *evaluation.warnings):
        yield safe_text(f"warning: {clip(text, LONGEST)}", style="yellow")


def render_companions(companions: Iterable[Companion]) -> Iterable[Text]:
    for line in describe_companions(companions):
        yield safe_text(clip(line, LONGEST))


def render_differences(evaluation: Evaluation) -> Iterable[Text]:
    for line in describe_differences(evaluation):
        yield safe_text(clip(line, LONGEST), style="dim")


def render_losses(evaluation: Evaluation) -> Iterable[Text]:
    for line in describe_losses(evaluation):
        yield safe_text(clip(line, LONGEST), style="dim")


def _asks_for_cpu(evaluation: Evaluation, chosen: Sequence[Column], columns: Sequence[str] | None) -> bool:
    """Return whether to show CPU times unasked: many rows are open, and no list of columns forbids it."""
    return shows_default(columns) and COLUMNS["cpu-ratio"] not in chosen and bool(find_open_times(evaluation))


def _fit_with_cpu(
    draw: Callable[[Sequence[Row], Sequence[Column]], Grid],
    rows: Sequence[Row],
    undecided: Sequence[Row],
    columns: Sequence[Column],
    width: int,
) -> list[RenderableType]:
    """Return the table of the rows, with CPU times for undecided ones, in a separate table if they do not fit."""
    if not undecided:
        return _fit(partial(draw, rows), columns, width)
    grid = draw(rows, [*columns, CPU_OF_OPEN])
    if grid.least_width <= width:
        return [Text(), grid]
    return [*_fit(partial(draw, rows), columns, width), *_fit(partial(draw, undecided), [CPU_OF_OPEN], width)]


def _fit(draw: Callable[[Sequence[Column]], Grid], columns: Sequence[Column], width: int) -> list[RenderableType]:
    """Return one table, or several with the same rows if the line is too narrow."""
    if not columns:
        return []
    grid = draw(columns)
    if not grid.rows:
        return []
    if len(columns) > 1 and grid.least_width > width:
        half = (len(columns) + 1) // 2
        return [*_fit(draw, columns[:half], width), *_fit(draw, columns[half:], width)]
    return [Text(), grid]


def _frame(title: str, shared: str, names: Sequence[str], columns: Sequence[Column]) -> Grid:
    return Grid(
        title=format_title(title, shared),
        headers=(*names, *(column.header for column in columns)),
        right=(*(False for _ in names), *(column.justify == "right" for column in columns)),
        narrowest=NARROWEST_NAME,
    )


def _targets_table(evaluation: Evaluation, notes: Notes, arms: Sequence[ArmResult], columns: Sequence[Column]) -> Grid:
    comparisons = by_candidate(evaluation.comparisons)
    shared, names, own = split_params(arm.case for arm in arms)
    grid = _frame(arms[0].case.workload, shared, (names, "target"), columns)
    for case, of_case in groupby(arms, key=lambda arm: arm.case):
        for position, arm in enumerate(of_case):
            comparison = comparisons.get(arm.key)
            name = own[case] if position == 0 else ""
            if arm.time_ms is None:
                grid.add(name, str(arm.target), f"{arm.outcome}{notes.mark(arm.reason)}")
            else:
                grid.add(name, str(arm.target), *(column.cell(arm, comparison, notes) for column in columns))
        grid.end_section()
    return grid


def _steps_table(evaluation: Evaluation, notes: Notes, arms: Sequence[ArmResult], columns: Sequence[Column]) -> Grid:
    comparisons = comparisons_of_steps(evaluation)
    # A run has one program.
    grid = _frame(MEASURES["step"], "", ("target",), columns)
    for arm in arms:
        grid.add(str(arm.target), *(column.cell(arm, comparisons.get(arm.key), notes) for column in columns))
    return grid


def _cases_table(
    evaluation: Evaluation, notes: Notes, comparisons: Sequence[Comparison], columns: Sequence[Column]
) -> Grid:
    arms = {arm.key: arm for arm in evaluation.arms}
    grid = _frame("inside each target", "", ("case", "target"), columns)
    for name, group in groupby(comparisons, key=make_pair_namer(comparisons)):
        for position, comparison in enumerate(group):
            cells = (column.cell(arms[comparison.pair.arms[1]], comparison, notes) for column in columns)
            grid.add(name if position == 0 else "", str(comparison.pair.arms[1].target), *cells)
        grid.end_section()
    return grid
