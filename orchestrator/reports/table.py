"""The comparison as tables for a terminal: one row per version, verdicts as words, colour only in addition."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.model import ArmResult, Comparison, Contrast
from orchestrator.reports.case_names import differences, split_params
from orchestrator.reports.columns import LONGEST, Column, Notes, choose, legend
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.grid import Grid, format_title
from orchestrator.reports.summary import by_candidate, sentences
from orchestrator.terminal.text import clip, render_plain, safe_text

# A row's name may wrap down to this width before its columns are laid out in two tables.
NARROWEST_NAME = 8


def render(comparison: Comparison, columns: Sequence[str] | None = None, arrangement: Arrangement | None = None) -> str:
    return render_plain(lambda width: layout(comparison, width, columns, arrangement))


def layout(
    comparison: Comparison, width: int, columns: Sequence[str] | None = None, arrangement: Arrangement | None = None
) -> RenderableType:
    """Lay out the comparison.

    `columns` are names that `parse_columns` has parsed. Without any, there are as many columns as the width has room
    for.
    """
    chosen, notes = choose(width, columns), Notes()
    arrangement = arrangement or Arrangement()
    arms, inside = arrangement.arms(comparison), arrangement.inside(comparison)
    parts: list[RenderableType] = [_head(comparison, chosen), *render_warnings(comparison)]
    if arrangement.only:
        parts.append(safe_text(_note_what_is_left_out(comparison, arrangement, arms, inside), style="dim"))
    for _, of_workload in groupby(arms, key=lambda arm: arm.case.workload):
        parts.extend(_fit(partial(_versions_table, comparison, list(of_workload), notes), chosen, width))
    judging = [column for column in chosen if column.of == "contrast"]
    parts.extend(_fit(partial(_cases_table, comparison, inside, notes), judging, width))
    return Group(*parts, *below(notes.lines(comparison.plan.alpha)))


def below(notes: Sequence[Text]) -> Sequence[Text]:
    return [Text(), *notes] if notes else []


def facts(comparison: Comparison) -> str:
    """Return where and how a run was measured, in one line."""
    plan, host = comparison.plan, comparison.manifest.host
    return (
        f"{plan.engine} · {plan.device} · {host.get('cpu')}, {host.get('usable_cores')} cores · "
        f"margin {plan.margin:.0%} · intervals at {1 - plan.alpha / len(plan.looks):.2%}"
    )


def _head(comparison: Comparison, columns: Sequence[Column]) -> Text:
    lines = (
        safe_text(f"tfcompare run {comparison.plan.run}", style="bold"),
        safe_text(facts(comparison), style="dim"),
        safe_text(legend(columns), style="dim"),
        *map(safe_text, sentences(comparison)),
    )
    return Text("\n").join(line for line in lines if line)


def _note_what_is_left_out(
    comparison: Comparison, arrangement: Arrangement, arms: Sequence[ArmResult], inside: Sequence[Contrast]
) -> str:
    cases = len({arm.case for arm in comparison.arms})
    selected = len({arm.case for arm in arms})
    only = f"--only {','.join(arrangement.only)}"
    if not arms and not inside:
        return f"{only}: nothing; without it there are {cases} cases"
    return f"{only}: {selected} of {cases} cases, and {len(inside)} contrasts inside a version"


def render_warnings(comparison: Comparison) -> Iterable[RenderableType]:
    for text in (*comparison.broken, *comparison.warnings):
        yield safe_text(f"warning: {clip(text, LONGEST)}", style="yellow")


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


def _versions_table(comparison: Comparison, arms: Sequence[ArmResult], notes: Notes, columns: Sequence[Column]) -> Grid:
    contrasts = by_candidate(comparison.contrasts)
    shared, names, own = split_params(arm.case for arm in arms)
    grid = _frame(arms[0].case.workload, shared, (names, "version"), columns)
    for case, of_case in groupby(arms, key=lambda arm: arm.case):
        for position, arm in enumerate(of_case):
            contrast = contrasts.get(arm.key)
            name = own[case] if position == 0 else ""
            if arm.median_ms is None:
                grid.add(name, arm.version, f"{arm.outcome}{notes.mark(arm.reason)}")
            else:
                grid.add(name, arm.version, *(column.cell(arm, contrast, notes) for column in columns))
        grid.end_section()
    return grid


def _cases_table(
    comparison: Comparison, contrasts: Sequence[Contrast], notes: Notes, columns: Sequence[Column]
) -> Grid:
    arms = {arm.key: arm for arm in comparison.arms}
    grid = _frame("inside each version", "", ("case", "version"), columns)
    for name, group in groupby(contrasts, key=differences(contrasts)):
        for position, contrast in enumerate(group):
            cells = (column.cell(arms[contrast.pair.arms[1]], contrast, notes) for column in columns)
            grid.add(name if position == 0 else "", contrast.pair.arms[1].version, *cells)
        grid.end_section()
    return grid
