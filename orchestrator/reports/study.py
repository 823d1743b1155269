"""The table of a run in the form of the study of training loops.

There is one block per loop, API and input, and one row per size of model and data. Times and percentages are as in the
study. The ratio and its interval, which the study lacks, are next to them or below them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.errors import UsageError
from orchestrator.model import ArmKey, ArmResult, Case, Comparison, Evaluation, Target
from orchestrator.reports.column_blocks import (
    ColumnBlock,
    RowNames,
    TargetCells,
    TimeCell,
    arrange_blocks,
    draw_block_table,
    fits,
    flat,
    stack_columns,
)
from orchestrator.reports.columns import COLUMNS, MARKS, STYLES, Notes
from orchestrator.reports.table import describe_measurement, render_warnings
from orchestrator.terminal.text import render_plain, safe_text

WORKLOAD = "train_loop"
GRAPH, EAGER = MODES = ("graph", "eager")
NOT_HELD = "·"

Block = tuple[str, ...]
Size = tuple[str, str]


@dataclass(frozen=True)
class StudySection:
    """The contents of one block."""

    title: str
    rows: RowNames
    pieces: tuple[ColumnBlock, ...]
    unmeasured: tuple[str, ...]


class Study:
    """The run's cases that belong to the study, and their results."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.plan = evaluation.plan
        self.targets = [target for target in self.plan.targets if not target.control]
        self._cases = {_split_case(case): case for case in self.plan.cases if case.workload == WORKLOAD}
        self.blocks = list(dict.fromkeys(block for block, _, _ in self._cases))
        self.modes = {mode for _, mode, _ in self._cases}
        self._arms = {arm.key: arm for arm in evaluation.arms}
        timed = [comparison for comparison in evaluation.comparisons if comparison.pair.metric == "time"]
        # A claim may compare the same two arms with another margin; the comparison with the run's margin comes last.
        timed.sort(key=lambda comparison: comparison.pair.margin is None)
        self._comparisons = {comparison.pair.arms: comparison for comparison in timed}

    def sizes(self, block: Block | None = None) -> list[Size]:
        """Return the sizes of one block, or of all, in the order in which the run names models and data."""
        sizes = list(dict.fromkeys(size for of, _, size in self._cases if block in (None, of)))
        models, data = (list(dict.fromkeys(size[axis] for size in sizes)) for axis in (0, 1))
        return sorted(sizes, key=lambda size: (models.index(size[0]), data.index(size[1])))

    def arms(self, block: Block, mode: str, target: Target) -> list[ArmResult | None]:
        """Return one arm per size of the block."""
        cases = (self._cases.get((block, mode, size)) for size in self.sizes(block))
        return [self._arms.get(ArmKey(case.label, target)) if case else None for case in cases]

    def comparison(self, baseline: ArmResult, candidate: ArmResult) -> Comparison | None:
        return self._comparisons.get((baseline.key, candidate.key))


def render_study(evaluation: Evaluation) -> str:
    return render_plain(lambda width: layout(evaluation, width))


def layout(evaluation: Evaluation, width: int) -> RenderableType:
    study, notes = Study(evaluation), Notes()
    if not study.blocks:
        raise UsageError(
            f"run {study.plan.run} has no case of {WORKLOAD}, which this table is about: --table verdicts shows what "
            f"it has, and `tfcompare run --case {WORKLOAD}` measures some"
        )
    sections = [_section(study, block, notes) for block in study.blocks]
    parts: list[RenderableType] = [_head(evaluation, study), *render_warnings(evaluation)]
    for section, tables in zip(sections, _tables(sections, width), strict=True):
        parts += [Text(), safe_text(section.title, style="bold"), *tables, *map(safe_text, section.unmeasured)]
    footnotes = notes.lines(study.plan.alpha)
    return Group(*parts, *([Text()] if footnotes else []), *footnotes)


def _head(evaluation: Evaluation, study: Study) -> Text:
    title = safe_text(f"tfcompare run {study.plan.run}, as the study prints it", style="bold")
    lines = (safe_text(line, style="dim") for line in (describe_measurement(evaluation), *_legend(study)))
    return Text("\n").join((title, *lines))


def _legend(study: Study) -> Iterator[str]:
    first, *later = study.targets
    yield "%: (1 - longer/shorter) * 100 in magnitude, as in the study; -260 takes 3.6 times as long"
    if later:
        yield f"{', '.join(map(str, later))}: ratio to {first} in the same mode, + if faster (TF2 v TF1 in the study)"
    if study.modes == set(MODES):
        yield "GvE: ratio of graph to eager in the same version, + if graph is faster"
    yield "times: after the warm-up, per step; the study's %-less figures are seconds, here units follow"
    yield "ratio and %: round by round, so not quite what the two times shown would give"
    marks = " · ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    yield f"{marks}: the interval reaches too far, or a note says why"
    held = study.sizes()
    models, data = ({size[axis] for size in held} for axis in (0, 1))
    if "large" in models and "small" in data and ("large", "small") not in held:
        yield "the large model has no small data, as in the study"


def _section(study: Study, block: Block, notes: Notes) -> StudySection:
    pieces = [*(_targets(study, block, mode, notes) for mode in MODES), _modes(study, block, notes)]
    return StudySection(
        title=" · ".join(block),
        rows=RowNames(("model", "data"), tuple(study.sizes(block))),
        pieces=tuple(piece for piece in pieces if piece.lead or piece.parts),
        unmeasured=tuple(_sizes_without_column(study, block, notes)),
    )


def _tables(sections: Sequence[StudySection], width: int) -> list[list[RenderableType]]:
    """Return the tables of the sections, all in the same form.

    That is one line per row if every section then fits into one table, and two lines otherwise.
    """
    layouts = [arrange_blocks(section.rows, section.pieces, flat, width) for section in sections]
    if any(len(tables) > 1 or not all(fits(columns, width) for columns in tables) for tables in layouts):
        layouts = [arrange_blocks(section.rows, section.pieces, stack_columns, width) for section in sections]
    parts: list[list[RenderableType]] = []
    for section, tables in zip(sections, layouts, strict=True):
        with_gaps: list[RenderableType] = [
            part for columns in tables for part in (Text(), draw_block_table(section.rows, columns))
        ]
        parts.append(with_gaps[1:])
    return parts


def _targets(study: Study, block: Block, mode: str, notes: Notes) -> ColumnBlock:
    """Return the piece of one mode: the first version's times, and each later version against them."""
    first, *later = study.targets
    baselines = study.arms(block, mode, first)
    lead = (
        [TargetCells(str(first), tuple(TimeCell(time=_time(arm, notes)) for arm in baselines))]
        if _has_time(baselines)
        else []
    )
    parts = []
    for target in later:
        arms = study.arms(block, mode, target)
        if _has_time(arms):
            pairs = zip(baselines, arms, strict=True)
            parts.append(
                TargetCells(str(target), tuple(_cell(study, *pair, _time(pair[1], notes), notes) for pair in pairs))
            )
    return ColumnBlock(mode, tuple(lead), tuple(parts))


def _modes(study: Study, block: Block, notes: Notes) -> ColumnBlock:
    """Return the piece of graph against eager, whose times are in the pieces before."""
    parts = []
    for target in study.targets:
        pairs = zip(study.arms(block, EAGER, target), study.arms(block, GRAPH, target), strict=True)
        part = TargetCells(str(target), tuple(_cell(study, *pair, "", notes) for pair in pairs))
        if any(cell.mark for cell in part.cells):
            parts.append(part)
    return ColumnBlock("GvE", (), tuple(parts))


def _cell(study: Study, baseline: ArmResult | None, candidate: ArmResult | None, time: str, notes: Notes) -> TimeCell:
    if not baseline or not candidate or baseline.time_ms is None or candidate.time_ms is None:
        return TimeCell(time=time)
    comparison = study.comparison(baseline, candidate)
    if comparison is None:
        return TimeCell(time=time)
    ratio, interval, percent = (
        str(COLUMNS[name].cell(candidate, comparison, notes)) for name in ("ratio", "interval", "study")
    )
    star = notes.star() if comparison.exploratory else ""
    reason = "" if _shows_why(comparison, study.plan.margin) else notes.mark(comparison.reason)
    mark = f"{notes.sign(comparison)}{star}{reason}"
    return TimeCell(
        time=time, ratio=ratio, interval=interval, percent=percent, mark=mark, style=STYLES[comparison.shown_verdict]
    )


def _time(arm: ArmResult | None, notes: Notes) -> str:
    if arm is None:
        return NOT_HELD
    if arm.time_ms is None:
        return f"{arm.outcome}{notes.mark(arm.reason)}"
    died = notes.mark(arm.reason) if arm.outcome == "died" else ""
    return f"{COLUMNS['time'].cell(arm, None, notes)}{died}"


def _has_time(arms: Iterable[ArmResult | None]) -> bool:
    return any(arm is not None and arm.time_ms is not None for arm in arms)


def _shows_why(comparison: Comparison, margin: float) -> bool:
    """Return whether the interval alone explains why nothing is decided.

    It does if it includes both no difference and a difference beyond the margin.
    """
    if comparison.ci_low is None or comparison.ci_high is None:
        return False
    bound = 1 + (margin if comparison.pair.margin is None else comparison.pair.margin)
    return comparison.ci_low <= 1 <= comparison.ci_high and (
        comparison.ci_low * bound < 1 or comparison.ci_high > bound
    )


def _sizes_without_column(study: Study, block: Block, notes: Notes) -> Iterator[str]:
    """Yield a line per outcome of the versions and modes that have no column, because nothing was measured in them."""
    by_outcome: dict[str, list[str]] = {}
    for target in study.targets:
        for mode in MODES:
            arms = study.arms(block, mode, target)
            for outcome in dict.fromkeys(_time(arm, notes) for arm in arms if arm and not _has_time(arms)):
                by_outcome.setdefault(outcome, []).append(f"{target} {mode}")
    for outcome, names in by_outcome.items():
        yield f"{outcome}: {', '.join(names)}"


def _split_case(case: Case) -> tuple[Block, str, Size]:
    values = dict(case.params)
    mode, model, data = (values.pop(name, "") for name in ("mode", "model", "data"))
    return tuple(values.values()), mode, (model, data)
