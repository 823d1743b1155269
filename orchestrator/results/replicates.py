"""Summaries of the rows of each replicate.

Whole streams are processed at once, because a run may have millions of rows.
"""

import itertools
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa

from orchestrator.errors import ContractBroken
from orchestrator.metrics.table import FEWEST_FOR_PERCENTILES, PERCENTILES
from orchestrator.model import Replicate, Target
from orchestrator.results.streams import (
    Stream,
    as_arrow,
    as_numpy,
    check_rows,
    column_numbers,
    is_phase,
    labels,
    read_stream,
)
from orchestrator.stats.round_times import middle_mean

MOST_NAMED = 3


@dataclass(frozen=True)
class LoadedReplicates:
    """Every replicate that could be read, and messages about what could not be.

    `unread` are the workers whose streams could not be read.
    """

    replicates: tuple[Replicate, ...] = ()
    problems: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    unread: frozenset[tuple[Target | None, int]] = frozenset()


@dataclass(frozen=True)
class ReadStream:
    """One good stream: its rows, one summary and the number of rows per replicate, and whether it was cut short.

    Its `idle` replicates, which should have made bursts and have none, are left out.
    """

    stream: Stream
    table: pa.Table
    replicates: tuple[Replicate, ...]
    rows: Mapping[int, int]
    cut: bool
    idle: frozenset[int]


# This returns which replicates of a stream count and why others do not, or raises ContractBroken if none may count.
Admit = Callable[[ReadStream], tuple[frozenset[int], tuple[str, ...]]]


def load_replicates(
    streams: Iterable[Stream], run: str, also: Callable[[pa.Table], None] | None = None, admit: Admit | None = None
) -> LoadedReplicates:
    """Load the replicates of all streams.

    A stream that was cut short gives the rows up to its last flush; one that breaks the contract gives none. The rows
    themselves are not kept, but `also` is called with those of each good stream.
    """
    replicates: list[Replicate] = []
    problems: list[str] = []
    broken: list[str] = []
    unread: set[tuple[Target | None, int]] = set()
    for stream in streams:
        try:
            read = read_replicates(stream, run)
            read, notes = admit_rows(read, admit)
        except ContractBroken as error:
            broken.append(str(error))
            unread.add((stream.target, stream.part))
            continue
        replicates.extend(read.replicates)
        problems.extend(notes)
        if read.idle:
            named, more = sorted(read.idle)[:MOST_NAMED], ", ..." if len(read.idle) > MOST_NAMED else ""
            numbers = ", ".join(map(str, named)) + more
            problems.append(f"{read.stream.name}: replicates without a burst do not count: {numbers}")
        if also:
            also(read.table)
        if read.cut:
            problems.append(f"{stream.name} was not closed by its worker: read up to its last whole replicate")
        # Otherwise, memory would hold these rows until those of the next stream are read.
        del read
    return LoadedReplicates(tuple(replicates), tuple(problems), tuple(broken), frozenset(unread))


def read_replicates(stream: Stream, run: str) -> ReadStream:
    """Read a stream, check every value and summarise its replicates; raise ContractBroken for a wrong one."""
    table, cut = read_stream(stream.path, stream.root, live=stream.live)
    table = check_rows(stream.path, table, run, stream.target)
    numbers = column_numbers(table, "replicate")
    once = np.setdiff1d(numbers[is_phase(table, "first")], numbers[is_phase(table, "second")])
    # These replicates made more than their first call, and have no burst.
    idle = np.setdiff1d(numbers, np.union1d(numbers[is_phase(table, "burst")], once))
    if len(idle):
        table = table.filter(pa.array(~np.isin(numbers, idle)))
    summaries = summarise(stream.path, table)
    numbers, counts = np.unique(column_numbers(table, "replicate"), return_counts=True)
    rows = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    return ReadStream(stream, table, tuple(summaries), rows, cut, frozenset(idle.tolist()))


def admit_rows(read: ReadStream, admit: Admit | None) -> tuple[ReadStream, tuple[str, ...]]:
    """Return the part of a stream that counts, and why the rest does not."""
    if admit is None:
        return read, ()
    admitted, notes = admit(read)
    if len(admitted) == len(read.replicates):
        return read, notes
    mask = np.isin(column_numbers(read.table, "replicate"), np.fromiter(admitted, np.int64, len(admitted)))
    counted = tuple(replicate for replicate in read.replicates if replicate.number in admitted)
    return replace(read, table=read.table.filter(pa.array(mask)), replicates=counted), notes


def summarise(path: Path, table: pa.Table) -> list[Replicate]:
    """Return one summary per replicate: its build row, its first two calls, and its bursts.

    A replicate that makes a single call has no bursts, and the times of its bursts are 0.
    """
    if table.num_rows == 0:
        return []
    rows = Rows.of(table)
    _one_of_each(path, rows)
    wall, cpu = _bursts(rows)
    called = np.where(rows.phase("build"), 0, rows.wall_ns)
    # The summaries have the order of the build rows in the stream.
    built = np.flatnonzero(is_phase(table, "build"))
    groups = np.searchsorted(rows.numbers, column_numbers(table, "replicate")[built])
    facts = table.take(as_arrow(built))
    columns = {
        "number": rows.numbers[groups],
        "build_ns": facts["wall_ns"],
        "first_ns": rows.single("first")[groups],
        "first_call_ns": rows.single("first", rows.wall_ns)[groups],
        "second_ns": rows.single("second")[groups],
        "calls_ns": np.add.reduceat(called, rows.starts)[groups],
        "time_ns": _typical_ns(wall)[groups],
        "cpu_ns": _typical_ns(cpu)[groups],
        "rise": np.array([_rise(of_one) for of_one in wall])[groups],
        "bursts": [wall[group] for group in groups],
        "cpu_bursts": [cpu[group] for group in groups],
        "percentiles": _percentiles(rows, groups),
        "wall_ns": [None] * len(groups),
    }
    values = {name: _values(columns[name] if name in columns else facts[name]) for name in Replicate._fields}
    values["target"] = _targets(path, list(values["target"]))
    # All streams of a run have the same cases, so each label is kept in memory once.
    values["case"] = map(intern, values["case"])
    return list(map(Replicate._make, zip(*values.values(), strict=True)))


def _targets(path: Path, names: Sequence[str]) -> list[Target]:
    try:
        by_name = {name: Target.parse(name) for name in set(names)}
    except ValueError as error:
        raise ContractBroken(f"{path}: {error}; run its version again") from error
    return [by_name[name] for name in names]


@dataclass(frozen=True)
class Rows:
    """The rows of a stream in the order of replicates and calls; `group` numbers the replicates from 0."""

    numbers: Any
    starts: Any
    group: Any
    phases: Any
    words: list[str | None]
    cases: Any
    rounds: Any
    bursts: Any
    wall_ns: Any
    step_ns: Any
    step_cpu_ns: Any

    @classmethod
    def of(cls, table: pa.Table) -> "Rows":
        replicates, ordinals = column_numbers(table, "replicate"), column_numbers(table, "ordinal")
        # A worker writes its rows in this order, and the check takes a tenth of the time of sorting them.
        later = replicates[1:] - replicates[:-1]
        sorted_already = bool(np.all((later > 0) | ((later == 0) & (ordinals[1:] > ordinals[:-1]))))
        order = slice(None) if sorted_already else np.lexsort((ordinals, replicates))
        numbers, starts, counts = np.unique(replicates[order], return_index=True, return_counts=True)
        words, phases = labels(table, "phase")
        wall_ns, cpu_ns, steps = (column_numbers(table, name)[order] for name in ("wall_ns", "cpu_ns", "steps"))
        return cls(
            numbers=numbers,
            starts=starts,
            group=np.repeat(np.arange(len(numbers)), counts),
            phases=phases[order],
            words=words,
            cases=labels(table, "case")[1][order],
            rounds=column_numbers(table, "round")[order],
            bursts=column_numbers(table, "burst")[order],
            wall_ns=wall_ns,
            step_ns=wall_ns / steps,
            step_cpu_ns=cpu_ns / steps,
        )

    def phase(self, name: str) -> Any:
        return self.phases == (self.words.index(name) if name in self.words else -1)

    def single(self, phase: str, ns: Any = None) -> Any:
        """Return the time of the only call of a phase by replicate, usually per step; 0 if there was no such call."""
        chosen = self.phase(phase)
        times = np.zeros(len(self.numbers))
        times[self.group[chosen]] = (self.step_ns if ns is None else ns)[chosen]
        return times


def _one_of_each(path: Path, rows: Rows) -> None:
    builds = np.bincount(rows.group[rows.phase("build")], minlength=len(rows.numbers))
    for wrong, what in ((builds == 0, "no build row"), (builds > 1, "several build rows")):
        if wrong.any():
            raise _odd_replicates(path, rows.numbers[wrong], what)
    for values, what in ((rows.cases, "cases"), (rows.rounds, "rounds")):
        several = np.minimum.reduceat(values, rows.starts) != np.maximum.reduceat(values, rows.starts)
        if several.any():
            raise _odd_replicates(path, rows.numbers[several], f"rows of several {what}")


def _odd_replicates(path: Path, numbers: Any, what: str) -> ContractBroken:
    others = f", like {len(numbers) - 1} more" if len(numbers) > 1 else ""
    return ContractBroken(f"{path}: replicate {numbers[0]} has {what}{others}; measure its version again, in a new run")


def _bursts(rows: Rows) -> "tuple[list[array[float]], list[array[float]]]":
    """Return the logs of the mean wall and CPU times of each burst, by replicate."""
    in_bursts = np.flatnonzero(rows.phase("burst"))
    if not len(in_bursts):
        return [array("d") for _ in rows.numbers], [array("d") for _ in rows.numbers]
    group, burst = rows.group[in_bursts], rows.bursts[in_bursts]
    begins = np.flatnonzero(np.r_[True, (group[1:] != group[:-1]) | (burst[1:] != burst[:-1])])
    counts = np.diff(np.r_[begins, len(in_bursts)])
    ends = np.cumsum(np.bincount(group[begins], minlength=len(rows.numbers))).tolist()
    wall, cpu = (
        np.log(np.maximum(np.add.reduceat(times[in_bursts], begins) / counts, 1.0)).tolist()
        for times in (rows.step_ns, rows.step_cpu_ns)
    )
    spans = list(itertools.pairwise([0, *ends]))
    walls, cpus = ([array("d", logs[begin:end]) for begin, end in spans] for logs in (wall, cpu))
    return walls, cpus


def _percentiles(rows: Rows, groups: Any) -> list[tuple[float, ...]]:
    """Return the logs of each replicate's percentiles; there are none if it made too few calls."""
    in_bursts = rows.phase("burst")
    counts = np.bincount(rows.group[in_bursts], minlength=len(rows.numbers))
    ends = np.r_[rows.starts[1:], len(rows.group)]
    found: list[tuple[float, ...]] = []
    for group in groups:
        if counts[group] < FEWEST_FOR_PERCENTILES:
            found.append(())
            continue
        own = slice(rows.starts[group], ends[group])
        times = rows.step_ns[own][in_bursts[own]]
        logs = np.log(np.maximum(np.percentile(times, list(PERCENTILES.values())), 1.0))
        found.append(tuple(logs.tolist()))
    return found


def _typical_ns(bursts: Iterable[Sequence[float]]) -> Any:
    """Return the typical time of each replicate, rounded because logs do not keep the last digits."""
    return np.round([math.exp(middle_mean(of_one)) if of_one else 0.0 for of_one in bursts], 3)


def judge_by_cpu(replicate: Replicate) -> Replicate:
    """Return the replicate with CPU times in place of the wall times of its bursts."""
    return replicate._replace(
        bursts=replicate.cpu_bursts, time_ns=replicate.cpu_ns, rise=cpu_rise(replicate), wall_ns=replicate.time_ns
    )


def cpu_rise(replicate: Replicate) -> float:
    """Return how the CPU times of the later half of the bursts differ from those of the earlier half."""
    return _rise(replicate.cpu_bursts)


def _rise(bursts: Sequence[float]) -> float:
    """Return how the later half of the bursts differs from the earlier half."""
    half = (len(bursts) + 1) // 2
    return middle_mean(bursts[half:]) - middle_mean(bursts[:half]) if len(bursts) > 1 else 0.0


def _values(column: Any) -> Iterable[Any]:
    """Convert a column to Python values in the fastest way: a run has tens of thousands of replicates."""
    if isinstance(column, list):
        return column
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if column.null_count == len(column):
        return [None] * len(column)
    if column.null_count:
        return list(column.to_pylist())
    combined = column.combine_chunks()
    if pa.types.is_dictionary(combined.type):
        words = combined.dictionary.to_pylist()
        return [words[code] for code in as_numpy(combined.indices).tolist()]
    return list(as_numpy(combined).tolist())
