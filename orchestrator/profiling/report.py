"""Profiles of several versions side by side: where a step's time goes, and which functions are new or took longer."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.model import Case
from orchestrator.model.profile import Profile, ProfiledArm
from orchestrator.profiling.align import (
    Figure,
    FunctionRow,
    Split,
    align_profiles,
    cumulative,
    grown,
    growth,
    module,
    own,
    shrunk,
    split_profile,
    value,
)
from orchestrator.profiling.layers import find_first_differing
from orchestrator.profiling.model import ProfileResult, stem
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.profile/1"
# A terminal of at least this width has columns for a function's line and its calls per step.
WIDE = 110
MOST_SHRUNK = 3
# A short description names at most this many functions; a change below this share of a step is the profiler's noise.
MOST_LISTED_GROWN, MOST_LISTED_SHRUNK, LEAST_LISTED_SHARE = 3, 2, 0.01
WRITTEN_IN_C = "C"
# These are the least width of a function's name, and the width of a version's figures next to it.
NARROWEST_NAME, FIGURES, WIDE_FIGURES = 24, 15, 22
FILES = {"profile": "json", "speedscope": "speedscope.json", "collapsed": "collapsed.txt"}
NO_LAYER = "no layer of Keras was seen: the call uses none, or runs them in a graph"
CPROFILE_BUG = "https://github.com/python/cpython/issues/122029"


@dataclass(frozen=True)
class CaseProfiles:
    """A case in all versions that have a profile of it."""

    case: Case
    targets: tuple[str, ...]
    profiles: tuple[Profile, ...]
    splits: tuple[Split, ...]
    rows: tuple[FunctionRow, ...]


def compare_profiles(profiled: ProfileResult) -> tuple[CaseProfiles, ...]:
    cases = []
    for case, arms in groupby(profiled.arms, key=lambda arm: arm.case):
        by_target = [(str(arm.target), arm.profile) for arm in arms if arm.profile]
        profiles = tuple(profile for _, profile in by_target)
        splits = tuple(split_profile(profile) for profile in profiles)
        cases.append(
            CaseProfiles(case, tuple(target for target, _ in by_target), profiles, splits, align_profiles(profiles))
        )
    return tuple(cases)


def describe_difference(profiled: ProfileResult) -> tuple[str, ...]:
    """Return which functions of a case are new, grown or gone in its second version, or which layer differs."""
    if layers := [text for _, _, _, text in explain_layers(profiled)]:
        return tuple(layers)
    lines = []
    for case in compare_profiles(profiled):
        if len(case.profiles) < 2:
            continue
        more = grown(case.rows, own, case.splits)[:MOST_LISTED_GROWN]
        less = shrunk(case.rows)[:MOST_LISTED_SHRUNK]
        least = LEAST_LISTED_SHARE * max(parts.step_ms for parts in case.splits)
        for row in (*more, *less):
            before, after = (value(cell, own) for cell in row.cells)
            if abs(after - before) >= least:
                lines.append(f"{_describe_function(row, before, after)} in a step")
    return tuple(lines)


def _describe_function(row: FunctionRow, before: float, after: float) -> str:
    name = f"{row.name} ({row.file.rpartition('/')[2] or WRITTEN_IN_C})"
    if row.cells[0] is None:
        return f"new: {name}, {format_time(after)}"
    if row.cells[1] is None:
        return f"gone: {name}, {format_time(before)}"
    return f"{'grown' if after > before else 'shrunk'}: {name}, {format_time(before)} -> {format_time(after)}"


def layout_profile(profiled: ProfileResult, width: int) -> RenderableType:
    heading = profiled.heading
    if not heading.calls:
        return _layout_of_layers(profiled)
    facts = (
        f"{heading.engine} · {heading.device} · {heading.host.get('cpu')}, {heading.host.get('usable_cores')} cores · "
        f"{heading.calls} calls of each case under a profiler"
    )
    parts: list[RenderableType] = [
        safe_text(f"tfcompare profile {heading.run}", style="bold"),
        safe_text(facts, style="dim"),
        safe_text(
            "A profiler slows calls down, Python code most of all. It shows where the time goes; `tfcompare run` "
            "measures how long a step takes.",
            style="yellow",
        ),
    ]
    for case_profiles in compare_profiles(profiled):
        parts.extend(_gap(parts))
        parts.append(_title(case_profiles.case))
        parts.extend(_arms_without_profile([arm for arm in profiled.arms if arm.case == case_profiles.case]))
        if case_profiles.profiles:
            parts.extend(_tables(case_profiles, heading.top, width))
    if any(arm.profile for arm in profiled.arms):
        parts.extend(_gap(parts))
        parts.extend(safe_text(line, style="dim") for line in _legend(profiled))
    return Group(*parts)


def _layout_of_layers(profiled: ProfileResult) -> RenderableType:
    heading = profiled.heading
    parts: list[RenderableType] = [safe_text(f"tfcompare profile {heading.run}", style="bold")]
    for case, arms in groupby(profiled.arms, key=lambda arm: arm.case):
        of_case = list(arms)
        parts += [Text(), _title(case), *_arms_without_profile(of_case)]
        for target, baseline, text in _explain(of_case):
            parts.append(safe_text(f"{target} against {baseline}: {text}" if baseline else f"{target}: {text}"))
    return Group(*parts)


def explain_layers(profiled: ProfileResult) -> Iterator[tuple[Case, str, str | None, str]]:
    """Yield each case in each version with the version that it is compared with, and what their layers show."""
    for case, arms in groupby(profiled.arms, key=lambda arm: arm.case):
        for target, baseline, text in _explain(list(arms)):
            yield case, target, baseline, text


def _explain(arms: Sequence[ProfiledArm]) -> Iterator[tuple[str, str | None, str]]:
    """Yield each version with the first one whose layers were seen, and what the layers of both show."""
    baseline: ProfiledArm | None = None
    for arm in arms:
        if arm.layers and baseline and baseline.layers:
            yield str(arm.target), str(baseline.target), find_first_differing(baseline.layers, arm.layers)
        elif arm.layers:
            baseline = arm
        elif arm.layers is not None:
            yield str(arm.target), None, NO_LAYER


def _gap(parts: Sequence[RenderableType]) -> list[Text]:
    """Return an empty line, except after a table, which ends with one."""
    return [] if isinstance(parts[-1], Table) else [Text()]


def _title(case: Case) -> Text:
    return safe_text(case.workload, style="bold").append_text(safe_text(f"  {case.params_text}", style="dim"))


def _arms_without_profile(arms: Sequence[ProfiledArm]) -> Iterable[Text]:
    for arm in arms:
        if arm.outcome != "profiled":
            yield safe_text(f"{arm.target} {arm.outcome}: {arm.reason}", style="yellow")


def _tables(case_profiles: CaseProfiles, top: int, width: int) -> Iterable[Table]:
    yield _split_table(case_profiles)
    first, others = case_profiles.targets[0], case_profiles.targets[1:]
    against = f" against {first}" if others else ""
    what = "new or grown functions" if others else "largest functions"
    by_cumulative, by_own = (
        grown(case_profiles.rows, figure, case_profiles.splits)[:top] for figure in (cumulative, own)
    )
    less = shrunk(case_profiles.rows)[:MOST_SHRUNK]
    for columns in _columns(case_profiles, width):
        yield columns.table(f"{what}{against}, with all that they call", by_cumulative, cumulative)
        yield columns.table(f"{what}{against}, by themselves", by_own, own, with_totals=True)
        if less:
            yield columns.table(f"gone or shrunk functions{against}, by themselves", less, own)


def _columns(case_profiles: CaseProfiles, width: int) -> Iterable["Columns"]:
    """Return the versions in groups as large as the width allows, each including the first version.

    Figures are not squeezed, because one without its last digits would look like another.
    """
    wide = width >= WIDE
    count, room = len(case_profiles.targets), max(2, (width - NARROWEST_NAME) // (WIDE_FIGURES if wide else FIGURES))
    if count <= room:
        yield Columns(case_profiles, tuple(range(count)), wide)
        return
    for begin in range(1, count, room - 1):
        yield Columns(case_profiles, (0, *range(begin, min(begin + room - 1, count))), wide)


def _frame(title: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=safe_text(title), title_justify="left", title_style="", padding=(0, 1, 0, 0))
    table.pad_edge = False
    return table


def _split_table(case_profiles: CaseProfiles) -> Table:
    table = _frame("a step under the profiler")
    table.add_column("target", no_wrap=True)
    for header in ("build", "train", "other", "step", "profiler"):
        table.add_column(header, justify="right", no_wrap=True, overflow="fold")
    for target, profile, parts in zip(case_profiles.targets, case_profiles.profiles, case_profiles.splits, strict=True):
        table.add_row(
            safe_text(target),
            format_time(parts.build_ns / 1e6),
            _share(parts.train_ms, parts),
            _share(parts.other_ms, parts),
            format_time(parts.step_ms),
            # A factor below 1 is noise of the machine.
            f"{max(1.0, profile.longer):.1f}x",
        )
    return table


@dataclass(frozen=True)
class Columns:
    """Tables of functions with one column for each of these versions, given by their positions."""

    case_profiles: CaseProfiles
    indices: tuple[int, ...]
    wide: bool

    def table(self, title: str, rows: Sequence[FunctionRow], figure: Figure, *, with_totals: bool = False) -> Table:
        table = _frame(title)
        table.add_column("function", overflow="fold")
        if self.wide:
            table.add_column("where", overflow="fold")
        for index in self.indices:
            if self.wide:
                table.add_column("calls", justify="right", no_wrap=True)
            table.add_column(safe_text(self.case_profiles.targets[index]), justify="right", no_wrap=True)
        for row in rows:
            table.add_row(
                *self._name(row), *(text for index in self.indices for text in self._figures(row, index, figure))
            )
        if with_totals:
            self.add_totals(table, rows, figure)
        return table

    def _name(self, row: FunctionRow) -> list[Text]:
        """Return a function's name; one inside another function has only its own name, as in a traceback."""
        name, file = row.name.rpartition(".<locals>.")[2], row.file.rpartition("/")[2]
        if self.wide:
            where = module(row.file).removeprefix("tensorflow/python/")
            return [safe_text(name), safe_text(f"{where}:{row.line}" if row.file else WRITTEN_IN_C, style="dim")]
        return [safe_text(name).append_text(safe_text(f"  {file or WRITTEN_IN_C}", style="dim"))]

    def _figures(self, row: FunctionRow, index: int, figure: Figure) -> list[str]:
        cell = row.cells[index]
        if cell is None:
            return ["", "-"] if self.wide else ["-"]
        time = _share(figure(cell), self.case_profiles.splits[index])
        calls = f"{cell.calls:.0f}" if cell.calls >= 100 else f"{cell.calls:.3g}"
        return [calls, time] if self.wide else [time]

    def add_totals(self, table: Table, rows: Sequence[FunctionRow], figure: Figure) -> None:
        """Add the functions that have no row, so that the rows of each version add up to its step."""
        table.add_section()
        others, steps = [], []
        for index in self.indices:
            parts, blank = self.case_profiles.splits[index], [""] if self.wide else []
            rows_ms = sum(value(row.cells[index], figure) for row in rows)
            others += [*blank, _share(parts.step_ms - rows_ms, parts)]
            steps += [*blank, _share(parts.step_ms, parts)]
        table.add_row("all others", *([""] if self.wide else []), *others)
        table.add_row("step", *([""] if self.wide else []), *steps)


def _share(milliseconds: float, parts: Split) -> str:
    return f"{format_time(max(milliseconds, 0.0))} {milliseconds / (parts.step_ms or 1.0):4.0%}"


def _legend(profiled: ProfileResult) -> Iterable[str]:
    yield (
        "build: all up to the third call, and functions called once or twice after it; train: functions called once "
        "per step; other: the rest, including functions that these call at a different rate. Percentages are of the "
        "step: the time without the build."
    )
    yield (
        "profiler: how many times as long a call takes under it. -: not called there. C: written in C, with what it "
        "calls."
    )
    yield "With all that they call, functions overlap; by themselves, they add up to the step."
    yield (
        "Only the thread that makes the calls is profiled: the work of TensorFlow's own threads counts for the "
        "function that waits for it."
    )
    yield (
        f"Flame graphs: {profiled.path}/profiles/*.speedscope.json opens in https://www.speedscope.app, "
        "*.collapsed.txt is for flamegraph.pl; a tracer recorded them in a few more calls."
    )
    for target in dict.fromkeys(
        arm.target for arm in profiled.arms if arm.profile and arm.profile.profiler == "tracer"
    ):
        python = profiled.heading.pythons.get(target, "")
        yield (
            f"{target}: cProfile of Python {python} loses track at functions written in C ({CPROFILE_BUG}), so a "
            "tracer written in Python was used instead, which slows calls down even more."
        )


def profile_as_object(profiled: ProfileResult) -> dict[str, Any]:
    heading = profiled.heading
    return {
        "schema": SCHEMA,
        "run": pick(heading, "id=run engine device created seed host"),
        "profiles": [_arm(arm) for arm in profiled.arms],
        "layers": [
            {**pick(case, "workload params"), "target": target, "baseline": baseline, "finding": text}
            for case, target, baseline, text in explain_layers(profiled)
        ],
        "functions": [
            _function(case_profiles, row, figure, rank)
            for case_profiles in compare_profiles(profiled)
            for figure in (cumulative, own)
            for rank, row in enumerate(grown(case_profiles.rows, figure, case_profiles.splits)[: heading.top], 1)
        ],
    }


def _arm(arm: ProfiledArm) -> dict[str, Any]:
    facts = pick(arm, "workload=case.workload params=case.params target outcome reason")
    if arm.profile is None:
        return facts
    named = f"profiles/{stem(arm.case, arm.target)}"
    return {
        **facts,
        **pick(arm.profile, "profiler calls steps profiler_ratio=longer"),
        **pick(split_profile(arm.profile), "build_ms=build_ns train_ms other_ms step_ms"),
        "files": {kind: f"{named}.{end}" for kind, end in FILES.items()},
    }


def _function(case_profiles: CaseProfiles, row: FunctionRow, figure: Figure, rank: int) -> dict[str, Any]:
    return {
        **pick(case_profiles.case, "workload params"),
        **pick(row, "name file line"),
        "baseline": case_profiles.targets[0],
        "by": figure.__name__,
        "rank": rank,
        "growth_ms": growth(row, figure),
        "targets": {
            target: cell and pick(cell, "calls own_ms cumulative_ms")
            for target, cell in zip(case_profiles.targets, row.cells, strict=True)
        },
    }
