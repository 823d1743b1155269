"""The course of each arm's calls in bursts over time, summarized stream by stream: a run may have millions of calls.

At most `MOST_POINTS` medians are kept of each replicate, each over 1, 2, 4, 8 ... neighbouring calls; this number is
the same for all replicates of an arm. Medians are relative to the replicate's own median, so that
differences between processes drop out and changes inside them remain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from orchestrator import contract
from orchestrator.model import ArmKey, Target
from orchestrator.results.streams import column_numbers, is_phase, labels

# This is a power of two, so that medians over few calls can be combined into medians over more.
MOST_POINTS = 64
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Course:
    """The course of the replicates of an arm: the median and the quartiles at each point.

    They are relative to each replicate's own median. A point represents `width` calls; `calls` is the number of calls
    of the longest replicate.
    """

    calls: int
    width: int
    replicates: int
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class _Stream:
    """The replicates of one stream, one row each.

    `arm` is the index of the arm in `names`; `width` and `calls` are those of the arm in this stream.
    """

    names: Sequence[ArmKey]
    arm: Any
    number: Any
    width: Any
    calls: Any
    points: Any


class Calls:
    """An accumulator of calls.

    Pass it to `load_run` as `also`; afterwards `courses` returns the courses of the replicates that count.
    """

    def __init__(self) -> None:
        self._streams: list[_Stream] = []

    def add(self, table: pa.Table) -> None:
        """Add the rows of one stream, without those of the pilot."""
        if table.num_rows:
            chosen = is_phase(table, "burst") & (column_numbers(table, "round") != contract.PILOT_ROUND)
            if chosen.any():
                self._streams.append(_sum_up(table, chosen))

    def courses(self, counted: Iterable[int]) -> dict[ArmKey, Course]:
        """Return the courses by arm.

        `counted` are the numbers of the replicates that count.
        """
        numbers = np.array(sorted(set(counted)), dtype=np.int64)
        parts: dict[ArmKey, list[tuple[int, int, Any]]] = {}
        for stream in self._streams:
            rows = np.flatnonzero(np.isin(stream.number, numbers))
            rows = rows[np.argsort(stream.arm[rows], kind="stable")]
            arms, starts = np.unique(stream.arm[rows], return_index=True)
            for arm, rows_of_arm in zip(arms, np.split(rows, starts[1:]), strict=True):
                part = (
                    int(stream.width[rows_of_arm[0]]),
                    int(stream.calls[rows_of_arm].max()),
                    stream.points[rows_of_arm],
                )
                parts.setdefault(stream.names[arm], []).append(part)
        return {name: _course(of_arm) for name, of_arm in parts.items()}


def _sum_up(table: pa.Table, chosen: Any) -> _Stream:
    replicate = column_numbers(table, "replicate")[chosen]
    order = np.lexsort((column_numbers(table, "ordinal")[chosen], replicate))
    rows = np.flatnonzero(chosen)[order]
    step_ns = column_numbers(table, "wall_ns")[rows] / column_numbers(table, "steps")[rows]
    numbers, starts, counts = np.unique(replicate[order], return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(numbers)), counts)
    call = np.arange(len(rows)) - starts[group]
    names, arm = _arms(table, rows[starts])
    longest = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(longest, arm, counts)
    width = 2 ** np.ceil(np.log2(np.maximum(longest / MOST_POINTS, 1.0))).astype(np.int64)
    medians = np.maximum(_medians(step_ns, group)[1], 1.0)
    points = np.full((len(numbers), MOST_POINTS), np.nan, dtype=np.float32)
    filled, values = _medians(step_ns / medians[group], group * MOST_POINTS + call // width[arm][group])
    points.ravel()[filled] = values
    return _Stream(names, arm, numbers, width[arm], counts, points)


def _arms(table: pa.Table, rows: Any) -> tuple[list[ArmKey], Any]:
    """Return the arms that these rows belong to, and the index of each row's arm."""
    cases, case = labels(table, "case")
    targets, target = labels(table, "target")
    codes, arm = np.unique(case[rows].astype(np.int64) * len(targets) + target[rows], return_inverse=True)
    indices = (divmod(code, len(targets)) for code in codes.tolist())
    names = [(str(cases[of_case]), str(targets[of_target])) for of_case, of_target in indices]
    return [ArmKey(name, Target.parse(target)) for name, target in names], arm


def _medians(values: Any, key: Any) -> tuple[Any, Any]:
    """Return the distinct keys, and the median of the values of each."""
    ordered = values[np.lexsort((values, key))]
    keys, counts = np.unique(key, return_counts=True)
    starts = np.cumsum(counts) - counts
    return keys, (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2


def _course(parts: Sequence[tuple[int, int, Any]]) -> Course:
    """Combine the parts of an arm into one course.

    A worker that was restarted leaves a part of an arm in another stream, perhaps summarized over fewer calls.
    """
    width = max(of_part for of_part, _, _ in parts)
    calls = max(of_part for _, of_part, _ in parts)
    points = np.vstack([_coarser(matrix, width // of_part) for of_part, _, matrix in parts])
    used = -(-calls // width)
    low, middle, high = (_quantile(points[:, :used], share, axis=0) for share in QUARTILES)
    return Course(calls, width, len(points), *(tuple(line.tolist()) for line in (low, middle, high)))


def _coarser(points: Any, factor: int) -> Any:
    """Return the medians of `factor` neighbours, padded with NaN."""
    factor = min(factor, MOST_POINTS)
    if factor == 1:
        return points
    wider = np.full_like(points, np.nan)
    wider[:, : MOST_POINTS // factor] = _quantile(points.reshape(len(points), -1, factor), 0.5, axis=2)
    return wider


def _quantile(points: Any, share: float, axis: int) -> Any:
    """Return a quantile of the existing values, or NaN if there are none.

    This is far faster than numpy's own function, and gives no warnings.
    """
    ordered = np.sort(points, axis=axis)
    last = np.maximum((~np.isnan(points)).sum(axis=axis, keepdims=True) - 1, 0)
    below = np.floor(last * share).astype(np.int64)
    above = np.minimum(below + 1, last)
    part = last * share - below
    lower, upper = (np.take_along_axis(ordered, index, axis=axis) for index in (below, above))
    return np.squeeze(lower + (upper - lower) * part, axis=axis)
