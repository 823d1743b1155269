"""What the profiles of two versions show, in a few lines of text."""

from collections.abc import Iterator

from orchestrator.profiling.align import FunctionRow, grown, own, shrunk, value
from orchestrator.profiling.model import Profiled
from orchestrator.profiling.report import WRITTEN_IN_C, CaseProfiles, compare_profiles, explain_layers
from orchestrator.terminal.durations import format_time

MOST_GROWN, MOST_SHRUNK = 3, 2
# Of a step. Less is noise of the profiler.
LEAST_SHARE = 0.01


def describe_difference(profiled: Profiled) -> tuple[str, ...]:
    """Return which functions of a case are new, grown or gone in its second version, or which layer differs."""
    layers = [text for _, _, _, text in explain_layers(profiled)]
    return tuple(layers or [line for case in compare_profiles(profiled) for line in _describe_functions(case)])


def _describe_functions(case: CaseProfiles) -> Iterator[str]:
    if len(case.profiles) < 2:
        return
    more = grown(case.rows, own, case.splits)[:MOST_GROWN]
    less = shrunk(case.rows, own)[:MOST_SHRUNK]
    least = LEAST_SHARE * max(parts.step_ms for parts in case.splits)
    for row in (*more, *less):
        before, after = (value(cell, own) for cell in row.cells)
        if abs(after - before) >= least:
            yield f"{_describe_function(row, before, after)} in a step"


def _describe_function(row: FunctionRow, before: float, after: float) -> str:
    name = f"{row.name} ({row.file.rpartition('/')[2] or WRITTEN_IN_C})"
    if row.cells[0] is None:
        return f"new: {name}, {format_time(after)}"
    if row.cells[1] is None:
        return f"gone: {name}, {format_time(before)}"
    return f"{'grown' if after > before else 'shrunk'}: {name}, {format_time(before)} -> {format_time(after)}"
