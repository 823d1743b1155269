"""The comparison as tables for a terminal: a row a version, the verdict as a word, colour only on top of it."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.model import Arm, Case, Comparison, Contrast
from orchestrator.reports.columns import MARKS, Column, Notes, choose, legend
from orchestrator.reports.plain import drawn, plain

# A row's name may wrap down to this width before its columns are laid out in two tables.
NARROWEST_NAME = 8


def render(comparison: Comparison, columns: Sequence[str] | None = None) -> str:
    return drawn(lambda width: layout(comparison, width, columns))


def layout(comparison: Comparison, width: int, columns: Sequence[str] | None = None) -> RenderableType:
    """`columns` are names that `known_columns` has parsed; without any, as many as the width has room for."""
    chosen, notes = choose(width, columns), Notes()
    parts: list[RenderableType] = [_head(comparison, chosen), *warned(comparison)]
    for _, arms in groupby(comparison.arms, key=lambda arm: arm.case.workload):
        parts.extend(_fitted(partial(_versions_table, comparison, list(arms), notes), chosen, width))
    judging = [column for column in chosen if column.of == "contrast"]
    parts.extend(_fitted(partial(_cases_table, comparison, notes), judging, width))
    parts.extend(notes.lines(comparison.plan.alpha))
    return Group(*parts)


def facts(comparison: Comparison) -> str:
    """Where and how a run was measured, in one line."""
    plan, host = comparison.plan, comparison.manifest.host
    return (
        f"{plan.engine} · {plan.device} · {host.get('cpu')}, {host.get('usable_cores')} cores · "
        f"margin {plan.margin:.0%} · intervals at {1 - plan.alpha / len(plan.looks):.2%}"
    )


def _head(comparison: Comparison, columns: Sequence[Column]) -> Text:
    lines = (
        plain(f"tfcompare run {comparison.plan.run}", style="bold"),
        plain(facts(comparison), style="dim"),
        plain(legend(columns), style="dim"),
        *map(plain, summary(comparison).split("\n")),
    )
    return Text("\n").join(line for line in lines if line)


def summary(comparison: Comparison) -> str:
    """The verdicts of each version in one sentence."""
    sentences = []
    baseline = comparison.plan.versions[0]
    for version in comparison.plan.versions[1:]:
        own = [
            contrast
            for contrast in comparison.contrasts
            if contrast.pair.kind == "version" and contrast.pair.candidate == version
        ]
        counts = {verdict: sum(1 for contrast in own if contrast.verdict == verdict) for verdict in MARKS}
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        sentences.append(f"{version} against {baseline}: {told or 'nothing measured'}.")
    return "\n".join(sentences)


def warned(comparison: Comparison) -> Iterable[RenderableType]:
    for text in (*comparison.broken, *comparison.warnings):
        yield plain(f"warning: {text}", style="yellow")


def _fitted(draw: Callable[[Sequence[Column]], Table], columns: Sequence[Column], width: int) -> list[RenderableType]:
    """One table, or several with the same rows: squeezed into too narrow a line, a figure would lose its last digits
    and look like another."""
    if not columns:
        return []
    table = draw(columns)
    if table.row_count == 0:
        return []
    if len(columns) > 1 and _least_width(table) > width:
        half = (len(columns) + 1) // 2
        return [*_fitted(draw, columns[:half], width), *_fitted(draw, columns[half:], width)]
    return [Padding(table, (1, 0, 0, 0))]


def _least_width(table: Table) -> int:
    # The box takes a blank on each side, and each column one more for its padding.
    name, *others = (max(cell_len(str(cell)) for cell in (one.header, *one.cells)) + 2 for one in table.columns)
    return min(name, NARROWEST_NAME + 2) + sum(others)


def _frame(title: str, shared: str, names: Sequence[str], columns: Sequence[Column]) -> Table:
    caption = plain(title, style="bold").append_text(plain(f"  {shared}" if shared else "", style="not bold dim"))
    table = Table(box=SIMPLE_HEAD, title=caption, title_justify="left", title_style="", padding=(0, 1, 0, 0))
    table.pad_edge = False
    for position, name in enumerate(names):
        table.add_column(plain(name), no_wrap=position > 0, overflow="fold")
    for column in columns:
        table.add_column(plain(column.header), justify=column.justify, no_wrap=True, overflow="fold")
    return table


def _add(table: Table, *cells: str | Text) -> None:
    table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in cells))


def _versions_table(comparison: Comparison, arms: Sequence[Arm], notes: Notes, columns: Sequence[Column]) -> Table:
    contrasts = {
        contrast.pair.arms[1]: contrast
        for contrast in comparison.contrasts
        if contrast.pair.kind == "version" and contrast.pair.metric == "steady"
    }
    shared, names, own = split_params([arm.case for arm in arms])
    table = _frame(arms[0].case.workload, shared, (names, "version"), columns)
    for case, of_case in groupby(arms, key=lambda arm: arm.case):
        for position, arm in enumerate(of_case):
            contrast = contrasts.get((case.label, arm.version))
            name = own[case] if position == 0 else ""
            if arm.median_ms is None:
                _add(table, name, arm.version, f"{arm.outcome}{notes.mark(arm.reason)}")
            else:
                _add(table, name, arm.version, *(column.cell(arm, contrast, notes) for column in columns))
        table.add_section()
    return table


def _cases_table(comparison: Comparison, notes: Notes, columns: Sequence[Column]) -> Table:
    arms = {(arm.case.label, arm.version): arm for arm in comparison.arms}
    contrasts = [
        contrast
        for contrast in comparison.contrasts
        if contrast.pair.kind == "case" and contrast.pair.metric == "steady"
    ]
    table = _frame("inside each version", "", ("case", "version"), columns)
    for name, group in groupby(contrasts, key=_differences(contrasts)):
        for position, contrast in enumerate(group):
            cells = (column.cell(arms[contrast.pair.arms[1]], contrast, notes) for column in columns)
            _add(table, name if position == 0 else "", contrast.pair.version or "", *cells)
        table.add_section()
    return table


def _differences(contrasts: Sequence[Contrast]) -> Callable[[Contrast], str]:
    """Names each pair of cases: what sets the two apart, and what sets the pair apart from its workload's others."""
    pairs = {contrast.pair for contrast in contrasts}

    def told(contrast: Contrast) -> str:
        pair = contrast.pair
        alike = [other.params for other in pairs if other.workload == pair.workload]
        own = [value for name, value in pair.params if any((name, value) not in params for params in alike)]
        old, new = (set(_parameters(label)) for label in (pair.baseline, pair.candidate))
        apart = " ".join(item.partition("=")[2] for item in new - old)
        base = " ".join(item.partition("=")[2] for item in old - new)
        return " ".join([pair.workload, *own, apart, "v", base])

    return told


def _parameters(label: str) -> list[str]:
    return label.partition("[")[2].rstrip("]").split(",")


def split_params(cases: Iterable[Case]) -> tuple[str, str, dict[Case, str]]:
    """The parameters that all cases share, the names of the others, and each case's own values."""
    listed = list(dict.fromkeys(cases))
    shared = set(listed[0].params).intersection(*(case.params for case in listed))
    common = " ".join(f"{name}={value}" for name, value in listed[0].params if (name, value) in shared)
    names = " ".join(name for name, value in listed[0].params if (name, value) not in shared)
    own = {case: " ".join(value for name, value in case.params if (name, value) not in shared) for case in listed}
    return common, names, own
