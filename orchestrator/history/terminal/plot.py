"""Plots of a series made of characters: ratios over time, and a sparkline of a few cells."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from statistics import median

from rich.console import Console
from rich.text import Text

from orchestrator.history.model import Direction, Value
from orchestrator.history.night_rows import NightRow, find_bounds
from orchestrator.reports.columns import ratio

HEIGHT = 11
MOST_CELLS = 120
# The ratios at the axis are this wide.
LABEL = 5
# A night takes at most this many cells: a few nights need no wide plot.
WIDEST = 4
# A scale covers at least this much, or noise would fill it.
LEAST = math.log(1.08)
POINT, WHISKER, ONE, BORDER = "●", "│", "┄", "┊"
CUT_HIGH, CUT_LOW = "▵", "▿"
MARKS: dict[Direction, str] = {"slower": "▲", "faster": "▼"}
MISSING = "×"
BARS = "▁▂▃▄▅▆▇█"
GAP = "·"


@dataclass
class _Column:
    """The nights that share a column; only one night if there is room."""

    nights: list[date] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    mark: str = " "
    border: bool = False

    @property
    def middle(self) -> float:
        return median(value.effect for value in self.values)

    @property
    def span(self) -> tuple[float, float]:
        """The interval of one night; for several nights, the range from the lowest to the highest."""
        if len(self.values) > 1:
            return min(value.effect for value in self.values), max(value.effect for value in self.values)
        low, high = find_bounds(self.values[0])
        return math.log(low), math.log(high)


def plot(rows: Sequence[NightRow], changes: Mapping[date, Direction], width: int) -> list[str]:
    """Return the lines of a plot that fits into this width, or none if no night has a time.

    `changes` are marked where they begin.
    """
    if not any(row.value for row in rows):
        return []
    columns = _columns(rows, changes, min(width - LABEL - 3, MOST_CELLS))
    scale = _Scale.over([column for column in columns if column.values])
    labels = scale.labels()
    indent = LABEL + 2
    lines = [
        f"{label:>{indent - 1}}{'┤' if label else WHISKER}{''.join(cells)}".rstrip()
        for label, cells in zip(labels, zip(*(_cells(column, scale) for column in columns), strict=True), strict=True)
    ]
    axis, dates = _dates(columns)
    marks = "".join(column.mark for column in columns)
    below = [f"{'':>{indent - 1}}└{axis}", f"{'':>{indent}}{marks}", f"{'':>{indent}}{dates}"]
    each = max(len(column.nights) for column in columns)
    legend = (
        [f"{'':>{indent}}a column covers {each} nights: their median, and a line from the lowest to the highest"]
        if each > 1
        else []
    )
    return [*lines, *(line.rstrip() for line in below if line.strip()), *legend]


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    @classmethod
    def over(cls, columns: Sequence[_Column]) -> "_Scale":
        """Return a scale with room for every night.

        Intervals that are far wider than the range of the nights are cut off.
        """
        low, high = min(column.middle for column in columns), max(column.middle for column in columns)
        reach = max(high - low, LEAST)
        spans = [column.span for column in columns]
        low = max(min(span[0] for span in spans), low - reach / 2)
        high = min(max(span[1] for span in spans), high + reach / 2)
        middle, half = (low + high) / 2, max(high - low, LEAST) / 2
        return cls(middle - half, middle + half)

    def line_of(self, effect: float) -> int:
        """Return the line on which an effect is drawn, counted from the top."""
        share = (self.high - effect) / (self.high - self.low)
        return min(max(round(share * (HEIGHT - 1)), 0), HEIGHT - 1)

    def labels(self) -> list[str]:
        """Label the ends, the middle, and 1, which replaces any label next to it."""
        step = (self.high - self.low) / (HEIGHT - 1)
        labels = [""] * HEIGHT
        for line in (0, HEIGHT // 2, HEIGHT - 1):
            labels[line] = ratio(math.exp(self.high - line * step))
        if self.shows_one:
            unit = self.line_of(0.0)
            for line in range(max(unit - 1, 0), min(unit + 2, HEIGHT)):
                labels[line] = ""
            labels[unit] = ratio(1.0)
        return labels

    @property
    def shows_one(self) -> bool:
        return self.low <= 0.0 <= self.high


def _columns(rows: Sequence[NightRow], changes: Mapping[date, Direction], cells: int) -> list[_Column]:
    borders = sum(before.segment != after.segment for before, after in pairwise(rows))
    # If everything changes all the time, borders would leave no room for nights.
    borders = borders if borders <= cells // 4 else 0
    # A segment may begin a new column before the previous one is full.
    room = max(cells - 2 * borders - bool(borders), 1)
    each = -(-len(rows) // room)
    step = min(max(room // len(rows), 1), WIDEST)
    columns: list[_Column] = []
    segment = rows[0].segment
    for row in rows:
        if row.segment != segment:
            segment = row.segment
            if borders:
                columns.append(_Column(border=True))
        if each == 1 or not columns or columns[-1].border or len(columns[-1].nights) == each:
            columns += [_Column() for _ in range(step if columns else 1)]
        column = columns[-1]
        column.nights.append(row.night)
        if row.value:
            column.values.append(row.value)
            if row.night in changes:
                column.mark = MARKS[changes[row.night]]
        elif column.mark == " ":
            column.mark = MISSING
    return columns


def _cells(column: _Column, scale: _Scale) -> list[str]:
    if column.border:
        return [BORDER] * HEIGHT
    cells = [" "] * HEIGHT
    if scale.shows_one:
        cells[scale.line_of(0.0)] = ONE
    if not column.values:
        return cells
    low, high = column.span
    for line in range(scale.line_of(high), scale.line_of(low) + 1):
        cells[line] = WHISKER
    if high > scale.high + 1e-9:
        cells[0] = CUT_HIGH
    if low < scale.low - 1e-9:
        cells[-1] = CUT_LOW
    cells[scale.line_of(column.middle)] = POINT
    return cells


def _dates(columns: Sequence[_Column]) -> tuple[str, str]:
    """Return the axis, and the dates below it.

    There are as many dates as fit. Each begins under its tick, except the last one, which ends there.
    """
    axis = ["─"] * len(columns)
    text = [" "] * max(len(columns), 10)
    filled = [index for index, column in enumerate(columns) if column.nights]
    last = filled[-1]
    ending = str(columns[last].nights[-1])
    start = last + 1 - len(ending)
    if start >= len(ending) + 2:
        text[start : last + 1] = ending
        axis[last] = "┬"
    free = 0
    for index in filled:
        label = str(columns[index].nights[0])
        if index >= free and (index == filled[0] or index + len(label) + 2 <= start):
            text[index : index + len(label)] = label
            axis[index] = "┬"
            free = index + len(label) + 6
    return "".join(axis), "".join(text)


def sparkline(rows: Sequence[NightRow], cells: int) -> str:
    """Draw one cell per night, newest last, as high as its ratio.

    A dot is a night without a time, and a line is the border of a segment.
    """
    text = ""
    latest = list(rows[-cells:])
    effects = [row.value.effect for row in latest if row.value]
    low, high = (min(effects), max(effects)) if effects else (0.0, 0.0)
    middle, half = (low + high) / 2, max(high - low, LEAST) / 2
    segment = latest[0].segment if latest else 0
    for row in latest:
        text += BORDER if row.segment != segment else ""
        segment = row.segment
        if row.value is None:
            text += GAP
        else:
            share = (row.value.effect - middle + half) / (2 * half)
            text += BARS[min(max(round(share * (len(BARS) - 1)), 0), len(BARS) - 1)]
    return text[-cells:]


def print_unbroken(lines: Iterable[Text]) -> None:
    """Print lines without breaking them, however long they are, so that commands can be copied."""
    for line in lines:
        Console().print(line, soft_wrap=True)
