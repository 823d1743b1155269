"""The comparison as tables for a terminal: a row a version, the verdict as a word, colour only on top of it."""

import io
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.model import Arm, Case, Comparison, Contrast, VerdictName

STYLES: dict[VerdictName, str] = {"slower": "bold red", "faster": "bold green", "same": "", "inconclusive": "yellow"}
MARKS: dict[VerdictName, str] = {"slower": "▲", "faster": "▼", "same": "=", "inconclusive": "?"}
NUMBERS = ("time", "ratio", "interval", "seed %")
WIDE = 100


def render(comparison: Comparison) -> str:
    """For a file or a pipe: no colour, the width of COLUMNS or 80."""
    columns = shutil.get_terminal_size((80, 24)).columns if "COLUMNS" in os.environ else 80
    buffer = io.StringIO()
    console = Console(file=buffer, width=columns, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(layout(comparison, columns))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def layout(comparison: Comparison, width: int) -> RenderableType:
    notes = _Notes()
    wide = width >= WIDE
    parts: list[RenderableType] = [_head(comparison), *_warned(comparison)]
    by_pair = {contrast.pair.arms: contrast for contrast in comparison.contrasts if contrast.pair.kind == "version"}
    for workload, arms in groupby(comparison.arms, key=lambda arm: arm.case.workload):
        parts.append(_versions_table(workload, list(arms), by_pair, comparison.plan.versions, notes, wide))
    inside = [contrast for contrast in comparison.contrasts if contrast.pair.kind == "case"]
    if inside:
        parts.append(_cases_table(inside, notes, wide))
    parts.extend(notes.lines())
    return Group(*parts)


def _head(comparison: Comparison) -> Text:
    plan, host = comparison.plan, comparison.manifest.host
    head = Text(f"tfcompare run {plan.run}", style="bold")
    head.append(
        f"\n{plan.engine} · {plan.device} · {host.get('cpu')}, {host.get('usable_cores')} cores · "
        f"margin {plan.margin:.0%} · intervals at {1 - plan.alpha / len(plan.looks):.2%}",
        style="dim",
    )
    return head.append("\n" + summary(comparison), style="not bold")


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


def _warned(comparison: Comparison) -> Iterable[RenderableType]:
    for text in (*comparison.broken, *comparison.warnings):
        yield Text(f"warning: {text}", style="yellow")


class _Notes:
    """Footnotes: each reason once, numbered in the order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reason: str) -> str:
        return f" ({self._numbers.setdefault(reason, len(self._numbers) + 1)})" if reason else ""

    def lines(self) -> list[Text]:
        return [Text(f"({number}) {reason}", style="dim") for reason, number in self._numbers.items()]


def _frame(title: str, shared: str, columns: Sequence[str]) -> Table:
    caption = Text(title, style="bold").append(f"  {shared}" if shared else "", style="not bold dim")
    table = Table(box=SIMPLE_HEAD, title=caption, title_justify="left", title_style="", padding=(0, 1, 0, 0))
    table.pad_edge = False
    for position, name in enumerate(columns):
        justify: JustifyMethod = "right" if name in NUMBERS else "left"
        table.add_column(Text(name), justify=justify, no_wrap=position > 0, overflow="fold")
    return table


def _versions_table(
    workload: str,
    arms: Sequence[Arm],
    contrasts: dict[tuple[tuple[str, str], tuple[str, str]], Contrast],
    versions: Sequence[str],
    notes: _Notes,
    wide: bool,
) -> RenderableType:
    shared, names, own = split_params([arm.case for arm in arms])
    columns = (names, "version", "time", "ratio", "interval", "verdict", *(["seed %"] if wide else []))
    table = _frame(workload, shared, columns)
    for case, of_case in groupby(arms, key=lambda arm: arm.case):
        for arm in of_case:
            first = arm.version == versions[0]
            # An arm without a time says why in its own cell.
            judged = not first and arm.median_ms is not None
            contrast = contrasts.get(((case.label, versions[0]), (case.label, arm.version))) if judged else None
            row: list[str | Text] = [Text(own[case] if first else ""), arm.version, _time(arm, notes)]
            table.add_row(*row, *(_judged(contrast, notes, wide) if contrast else _fate(arm, notes)))
        table.add_section()
    return Padding(table, (1, 0, 0, 0))


def _cases_table(contrasts: Sequence[Contrast], notes: _Notes, wide: bool) -> RenderableType:
    columns = ("case", "version", "ratio", "interval", "verdict", *(["seed %"] if wide else []))
    table = _frame("inside each version", "", columns)
    for name, group in groupby(contrasts, key=_differences(contrasts)):
        for position, contrast in enumerate(group):
            name_once = Text(name if position == 0 else "")
            table.add_row(name_once, contrast.pair.version or "", *_judged(contrast, notes, wide))
        table.add_section()
    return Padding(table, (1, 0, 0, 0))


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


def _time(arm: Arm, notes: _Notes) -> str:
    if arm.median_ms is not None:
        return duration(arm.median_ms)
    return f"{arm.outcome}{notes.mark(arm.reason)}"


def _fate(arm: Arm, notes: _Notes) -> list[str | Text]:
    """The verdict cell of an arm that has no contrast of its own: empty unless it died after some rounds."""
    died = arm.outcome == "died" and arm.median_ms is not None
    return ["", "", f"died{notes.mark(arm.reason)}" if died else ""]


def _judged(contrast: Contrast, notes: _Notes, wide: bool) -> list[str | Text]:
    """The cells from the ratio on; a contrast without a ratio still has a verdict, with its reason."""
    verdict = Text(f"{MARKS[contrast.verdict]} {contrast.verdict}{notes.mark(contrast.reason)}")
    verdict.stylize(STYLES[contrast.verdict])
    if contrast.ratio is None or contrast.ci_low is None or contrast.ci_high is None:
        return ["", "", verdict, *([""] if wide else [])]
    low, high = (ratio(bound).removesuffix("x") for bound in (contrast.ci_low, contrast.ci_high))
    cells: list[str | Text] = [ratio(contrast.ratio), f"{low}-{high}", verdict]
    if wide:
        cells.append(f"{round(contrast.seed_percent):+d}" if contrast.seed_percent is not None else "")
    return cells


def ratio(value: float) -> str:
    """Two or three figures, as many as such a measurement bears."""
    if value < 0.1:
        return f"{value:.2g}x"
    return f"{value:.0f}x" if value >= 100 else f"{value:.1f}x" if value >= 10 else f"{value:.2f}x"


def duration(milliseconds: float) -> str:
    for unit, factor in (("s", 1e3), ("ms", 1.0), ("µs", 1e-3)):
        if milliseconds >= factor or unit == "µs":
            value = milliseconds / factor
            return f"{value:.0f} {unit}" if value >= 99.95 else f"{value:#.3g} {unit}"
    raise AssertionError(milliseconds)


def split_params(cases: Iterable[Case]) -> tuple[str, str, dict[Case, str]]:
    """The parameters that all cases share, the names of the others, and each case's own values."""
    listed = list(dict.fromkeys(cases))
    shared = set(listed[0].params).intersection(*(case.params for case in listed))
    common = " ".join(f"{name}={value}" for name, value in listed[0].params if (name, value) in shared)
    names = " ".join(name for name, value in listed[0].params if (name, value) not in shared)
    own = {case: " ".join(value for name, value in case.params if (name, value) not in shared) for case in listed}
    return common, names, own
