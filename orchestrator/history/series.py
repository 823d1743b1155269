"""Turns points into series: the nights of a case in a version, cut where the environment changed.

Series are computed as arrays, from whole columns of the table at once: two years of hundreds of cases are half a
million points, which take twenty seconds as objects. `all_series` makes objects of the arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.history.model import Key, Segment, Series, Value
from orchestrator.history.schema import to_points
from orchestrator.history.surroundings import CUTS, MOST_APART, cuts
from orchestrator.stats.paired import quantile

KEY = ("case", "target", "reference", "device", "engine", "host", "metric", "judge")
EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of text, stored as the distinct texts and the position of each row's text among them."""

    codes: Any
    texts: tuple[str, ...]

    @classmethod
    def of(cls, table: pa.Table, name: str) -> "Coded":
        # The parts are encoded before they are joined, since few of half a million texts differ.
        parts = table.column(name).dictionary_encode().unify_dictionaries().chunks
        codes = [part.indices.to_numpy() for part in parts]
        texts = parts[0].dictionary.to_pylist() if parts else ()
        return cls(np.concatenate([np.empty(0, dtype=np.int32), *codes]), tuple(texts))

    def text(self, row: int) -> str:
        return self.texts[int(self.codes[row])]


@dataclass(frozen=True, eq=False)
class Values:
    """The nights of a series that have a ratio, with the rounds of each night pooled.

    Nights are days since 1970; effects and errors are on the log scale.
    """

    night: Any
    effect: Any
    error: Any
    rounds: Any

    def __len__(self) -> int:
        return len(self.night)

    def cut(self, start: int, end: int) -> "Values":
        return Values(*(column[start:end] for column in (self.night, self.effect, self.error, self.rounds)))

    def objects(self) -> tuple[Value, ...]:
        columns = (self.night, self.effect, self.error, self.rounds)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return tuple(
            Value(night=day(night), effect=effect, error=error, rounds=rounds) for night, effect, error, rounds in rows
        )

    def half_widths(self) -> Any:
        """Return the half-widths of the 95 % intervals."""
        distinct, index = np.unique(self.rounds, return_inverse=True)
        return np.array([quantile(0.975, rounds - 1) for rounds in distinct.tolist()])[index] * self.error


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """A segment of a series as arrays."""

    values: Values
    because: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesArrays:
    """A series as arrays.

    `rows` are its row numbers in the table, oldest first. `nightly` holds its values, regardless of segments.
    """

    key: Key
    rows: Any
    pieces: tuple[Piece, ...]
    nightly: Values

    def segments(self, control: Sequence[Value]) -> tuple[Segment, ...]:
        """Return the segments as objects.

        `control` holds the values of the control arm, which are created once for all series that share it.
        """
        segments = []
        for piece in self.pieces:
            seen = set(map(day, piece.values.night.tolist()))
            beside = tuple(value for value in control if value.night in seen)
            segments.append(Segment(values=piece.values.objects(), control=beside, because=piece.because))
        return tuple(segments)


@cache
def day(number: int) -> date:
    return EPOCH + timedelta(days=number)


def has_value(table: pa.Table) -> Any:
    """Return for each row whether its point has a value, by the rule of `Point.has_value`."""
    return np.isfinite(_floats(table, "effect")) & (table.column("rounds").to_numpy() > 1)


def all_series(table: pa.Table) -> dict[Key, Series]:
    """Return the series in a table whose rows are sorted oldest first, as objects."""
    points = to_points(table)
    by_key = all_arrays(table)
    controls = {key: arrays.nightly.objects() for key, arrays in by_key.items() if key.is_control}
    return {
        key: Series(
            key=key,
            segments=arrays.segments(controls.get(key.control, ())),
            points=tuple(points[row] for row in arrays.rows.tolist()),
        )
        for key, arrays in by_key.items()
    }


def all_arrays(table: pa.Table) -> dict[Key, SeriesArrays]:
    """Return the series in a table whose rows are sorted oldest first, as arrays."""
    if not table.num_rows:
        return {}
    named = [Coded.of(table, name) for name in KEY]
    series, keys = _keys(named)
    order = np.argsort(series, kind="stable")
    of_row = series[order]
    timed = order[has_value(table)[order]]
    of_timed = series[timed]
    begins, reasons = _pieces(table, timed, of_timed)
    piece = np.cumsum(begins) - 1
    night = table.column("night").cast(pa.int32()).to_numpy().astype(np.int64)
    rounds = table.column("rounds").to_numpy().astype(np.int64)
    confirms = pc.equal(table.column("stage"), "confirm").combine_chunks().to_numpy(zero_copy_only=False)
    pooled = _Pool(table, night, rounds, confirms)
    of_piece, values = pooled.by(timed, piece)
    of_series, nightly = pooled.by(timed, of_timed)
    by_key = {}
    for number, key in enumerate(keys):
        low, high = np.searchsorted(of_row, [number, number + 1])
        first, last = np.searchsorted(of_timed, [number, number + 1])
        pieces = []
        for which in range(piece[first], piece[last - 1] + 1) if last > first else ():
            inside = np.searchsorted(of_piece, [which, which + 1])
            pieces.append(Piece(values=values.cut(*inside), because=reasons[which]))
        between = np.searchsorted(of_series, [number, number + 1])
        by_key[key] = SeriesArrays(key=key, rows=order[low:high], pieces=tuple(pieces), nightly=nightly.cut(*between))
    return by_key


def last_segments(by_key: Mapping[Key, SeriesArrays], keys: Iterable[Key] | None = None) -> dict[Key, Segment]:
    """Return the last segment of each series that has one, without controls; `keys` defaults to all series."""
    own = sorted(key for key in (by_key if keys is None else keys) if not key.is_control and by_key[key].pieces)
    control = {key: by_key[key].nightly.objects() for key in {key.control for key in own} & by_key.keys()}
    return {key: by_key[key].segments(control.get(key.control, ()))[-1] for key in own}


def _keys(named: Sequence[Coded]) -> tuple[Any, list[Key]]:
    """Return the number of each row's series, and the sorted keys, in which these numbers are positions."""
    mixed = np.zeros(len(named[0].codes), dtype=np.int64)
    for column in named:
        if len(column.texts) > 1:
            # The rows are renumbered after each column, since the product of many texts in all columns would not fit.
            _, mixed = np.unique(mixed * len(column.texts) + column.codes, return_inverse=True)
    _, first, series = np.unique(mixed, return_index=True, return_inverse=True)
    keys = [Key.parse(*(column.text(row) for column in named)) for row in first.tolist()]
    sort = sorted(range(len(keys)), key=keys.__getitem__)
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sort] = np.arange(len(keys))
    return rank[series], [keys[number] for number in sort]


def _pieces(table: pa.Table, timed: Any, of_timed: Any) -> tuple[Any, list[tuple[str, ...]]]:
    """Return whether a segment begins at each of these rows, and why each segment began."""
    columns = {name: Coded.of(table, name) for name in CUTS}
    around = [column.codes[timed] for column in columns.values()]
    own = pc.equal(table.column("target"), table.column("build")).combine_chunks().to_numpy(zero_copy_only=False)[timed]
    begins = np.ones(len(timed), dtype=bool)
    same_series = of_timed[1:] == of_timed[:-1]
    differs = np.zeros(max(len(timed) - 1, 0), dtype=bool)
    for name, codes in zip(CUTS, around, strict=True):
        changed = codes[1:] != codes[:-1]
        if name == "image":
            changed &= own[1:]
        differs |= changed
    apart = np.diff(table.column("night").cast(pa.int32()).to_numpy()[timed])
    gaps = np.where(apart > MOST_APART, apart, 0)
    begins[1:] = ~same_series | differs | (gaps > 0)
    reasons: list[tuple[str, ...]] = []
    # Every case of a night has the same cut, so it is put into words only once.
    by_cut: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for index in np.flatnonzero(begins).tolist():
        if index == 0 or not same_series[index - 1]:
            reasons.append(())
            continue
        cut = (*(codes[end] for codes in around for end in (index - 1, index)), own[index], gaps[index - 1])
        if cut not in by_cut:
            by_cut[cut] = cuts(*to_points(table.take([timed[index - 1], timed[index]])))
        reasons.append(by_cut[cut])
    return begins, reasons


@dataclass(frozen=True, eq=False)
class _Pool:
    table: pa.Table
    night: Any
    rounds: Any
    confirms: Any

    def by(self, rows: Any, group: Any) -> tuple[Any, Values]:
        """Return one value per night of each group, and the group that each value belongs to.

        The rounds of all parts of a night count together; the spread of a round is pooled over the parts.
        """
        order = np.lexsort((self.night[rows], group))
        rows, group = rows[order], group[order]
        if len(starts := _starts(group, self.night[rows])):
            # If the night was confirmed, only the new measurements count: its screen was selected because of its
            # deviation.
            confirms = self.confirms[rows]
            is_confirmed = np.repeat(np.maximum.reduceat(confirms, starts), np.diff([*starts, len(group)]))
            counted = confirms | ~is_confirmed
            rows, group = rows[counted], group[counted]
        night, rounds = self.night[rows], self.rounds[rows]
        effect, error = (_floats(self.table, name)[rows] for name in ("effect", "error"))
        starts = _starts(group, night)
        if not len(starts):
            return group, Values(night, effect, error, rounds)
        parts = np.diff([*starts, len(rows)])
        total = np.add.reduceat(rounds, starts)
        mean = np.add.reduceat(rounds * effect, starts) / total
        squares = np.add.reduceat(np.nan_to_num(error) ** 2 * rounds * (rounds - 1), starts)
        return group[starts], Values(night[starts], mean, np.sqrt(squares / (total - parts) / total), total)


def _starts(group: Any, night: Any) -> Any:
    """Return the positions at which a night of a group begins."""
    fresh = np.ones(len(group), dtype=bool)
    fresh[1:] = (group[1:] != group[:-1]) | (night[1:] != night[:-1])
    return np.flatnonzero(fresh)


def _floats(table: pa.Table, name: str) -> Any:
    return table.column(name).combine_chunks().to_numpy(zero_copy_only=False)
