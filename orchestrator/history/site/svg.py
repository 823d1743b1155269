"""Charts as inline SVG, written by hand: hundreds of them have to be drawn in seconds and without a script.

A drawing is stretched to the available width. Elements that must keep their shape, such as text, are placed by
percentage.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from orchestrator.history.series import EPOCH, Values, day
from orchestrator.reports.html.svg import WIDTH, round_values

# One pixel of height has this many units of a coordinate.
FINE = 4
# A date that is centred on its tick would be cut off within this share of the width at each edge.
EDGE = 0.06
MARKS_PX, AXIS_PX = 34, 20
SPARK_WIDTH, SPARK_HEIGHT, SPARK_POINTS = 240, 64, 60
# A scale spans at least this much, so that a series that hardly moves is drawn flat.
LEAST_SPAN = math.log(1.1)
LEAST_SPARK_SPAN = math.log(1.2)
MOST_TICKS, MOST_DATES = 5, 6
# A period of at least this many days is divided into months.
MONTHS_FROM = 120


@dataclass(frozen=True)
class Mark:
    """A sign at a night; `row` 0 is the upper one."""

    night: date
    sign: str
    row: int
    style: str = ""


@dataclass(frozen=True)
class Level:
    """The mean of the nights from `first` to `last`, as days."""

    first: int
    last: int
    effect: float


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A scale with days on the x axis and logarithms of ratios on the y axis; `height` is in pixels."""

    first: int
    last: int
    low: float
    high: float
    height: int

    def across(self, days: Any) -> Any:
        share = (days - self.first) / (self.last - self.first) if self.last > self.first else days * 0 + 0.5
        # A margin of half a percent on each side keeps what begins or ends there visible.
        return 0.005 + 0.99 * share

    def x(self, days: Any) -> Any:
        return np.rint(self.across(days) * WIDTH).astype(np.int64)

    def y(self, effects: Any) -> Any:
        share = (self.high - effects) / (self.high - self.low)
        # Values far outside are cut off anyway, but have to fit into an integer.
        return np.rint(np.clip(share, -9, 10) * self.height * FINE).astype(np.int64)


def scale(values: Sequence[Values], widths: Sequence[Any], first: int, last: int, height: int) -> Scale:
    """Return the scale for everything that is drawn together; wide intervals of single nights may exceed it."""
    effects = np.concatenate([piece.effect for piece in values])
    half = float(np.median(np.concatenate(widths)))
    low, high = float(effects.min()) - half, float(effects.max()) + half
    more = max(LEAST_SPAN - (high - low), 0.1 * (high - low)) / 2
    return Scale(first=first, last=last, low=low - more, high=high + more, height=height)


def chart(
    scale: Scale,
    pieces: Sequence[Values],
    widths: Sequence[Any],
    *,
    levels: Iterable[Level] = (),
    cuts: Iterable[int] = (),
    without: Any = (),
    marks: Sequence[Mark] = (),
    label: str,
) -> Markup:
    """Draw nights as dots with a band for their intervals.

    `cuts` are where segments begin. `without` are nights that have no ratio.
    """
    top = MARKS_PX if marks else 8
    tall = scale.height * FINE
    lines = [f"M0 {y}H{WIDTH}" for _, y in _ratios(scale)]
    paths = [f'<path class="grid" d="{"".join(lines)}"/>']
    paths += [f'<path class="one" d="M0 {int(scale.y(0.0))}H{WIDTH}"/>'] if scale.low < 0 < scale.high else []
    paths += _band(scale, pieces, widths)
    if cut := "".join(f"M{scale.x(night)} 0V{tall}" for night in cuts):
        paths.append(f'<path class="cut" d="{cut}"/>')
    paths += _dots(scale, pieces)
    if level := "".join(
        f"M{scale.x(mean.first)} {scale.y(mean.effect)}H{max(scale.x(mean.last), scale.x(mean.first) + 4)}"
        for mean in levels
    ):
        paths.append(f'<path class="level" d="{level}"/>')
    if len(without):
        gone = "".join(f"M{x} {tall - 28}v28" for x in scale.x(np.asarray(without)).tolist())
        paths.append(f'<path class="gone" d="{gone}"/>')
    signs = "".join(
        f'<text class="sign {mark.style}" x="{_percent(scale, mark.night)}" y="{12 + 15 * mark.row}">{mark.sign}</text>'
        for mark in marks
    )
    bottom = top + scale.height
    return Markup(  # noqa: S704
        f'<svg class="ratios" aria-hidden="true" height="{bottom + AXIS_PX}">'
        + "".join(f'<text x="100%" dx="-6" y="{top + y / FINE + 4:.0f}">{text}</text>' for text, y in _ratios(scale))
        + f'</svg><svg class="body" role="img" aria-label="{Markup.escape(label)}" height="{bottom + AXIS_PX}">'
        f'<svg y="{top}" width="100%" height="{scale.height}" viewBox="0 0 {WIDTH} {tall}" preserveAspectRatio="none">'
        + "".join(paths)
        + f'</svg>{signs}<line class="cursor" x1="-1%" x2="-1%" y1="{top}" y2="{bottom}"/>'
        + "".join(
            _date_label(scale, tick, f"{tick:%Y-%m-%d}" if whole else f"{tick:%Y-%m}", bottom + 15)
            for tick, whole in _dates(scale)
        )
        + "</svg>"
    )


def _date_label(scale: Scale, tick: date, text: str, y: int) -> str:
    """Return the label of a tick; at the edges it lies inside the chart, where it is not cut off."""
    across = scale.across(_number(tick))
    edge = " from" if across < EDGE else " to" if across > 1 - EDGE else ""
    return f'<text class="date{edge}" x="{_percent(scale, tick)}" y="{y}">{text}</text>'


def spark(pieces: Sequence[Values], first: int, last: int, changes: Iterable[date], label: str) -> Markup:
    """Draw the medians of neighbouring nights, each line on its own scale."""
    if not any(len(piece) for piece in pieces):
        return Markup()
    summed = [_sum_up(piece, first, last) for piece in pieces if len(piece)]
    effects = np.concatenate([values.effect for values in summed])
    middle = float(effects.max() + effects.min()) / 2
    half = max(float(effects.max() - effects.min()) * 1.15, LEAST_SPARK_SPAN) / 2
    scale = Scale(first=first, last=last, low=middle - half, high=middle + half, height=SPARK_HEIGHT // FINE)
    line = []
    for values in summed:
        x = np.rint(scale.across(values.night) * SPARK_WIDTH).astype(np.int64)
        line.append(_path(x, scale.y(values.effect)) + ("h1" if len(values) == 1 else ""))
    ticks = "".join(f"M{scale.across(_number(night)) * SPARK_WIDTH:.0f} 0V{SPARK_HEIGHT}" for night in changes)
    return Markup(  # noqa: S704
        f'<svg class="spark" role="img" aria-label="{Markup.escape(label)}" '
        f'viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" preserveAspectRatio="none">'
        + (f'<path class="step" d="{ticks}"/>' if ticks else "")
        + f'<path d="{"".join(line)}"/></svg>'
    )


def _band(scale: Scale, pieces: Sequence[Values], widths: Sequence[Any]) -> list[str]:
    paths = []
    for piece, half in zip(pieces, widths, strict=True):
        x, upper, lower = scale.x(piece.night), scale.y(piece.effect + half), scale.y(piece.effect - half)
        gaps = np.diff(piece.night)
        # Stretches are separated by gaps far longer than usual.
        far = (np.flatnonzero(gaps > 3 * np.median(gaps)) + 1).tolist() if len(gaps) else []
        for low, high in pairwise([0, *far, len(x)] if len(x) else []):
            around = np.concatenate([x[low:high], x[low:high][::-1]])
            paths.append(_path(around, np.concatenate([upper[low:high], lower[low:high][::-1]])) + "z")
    return [f'<path class="band" d="{"".join(paths)}"/>'] if paths else []


def _dots(scale: Scale, pieces: Sequence[Values]) -> list[str]:
    x = np.concatenate([scale.x(piece.night) for piece in pieces])
    y = np.concatenate([scale.y(piece.effect) for piece in pieces])
    if not len(x):
        return []
    dots = [f"m{right} {down}h0" for right, down in zip(*_moves(x, y), strict=True)]
    return [f'<path class="dots" d="M{dots[0][1:]}{"".join(dots[1:])}"/>']


def _path(x: Any, y: Any) -> str:
    (first_x, *right), (first_y, *down) = _moves(x, y)
    return f"M{first_x} {first_y}" + (
        "l" + " ".join([f"{across} {along}" for across, along in zip(right, down, strict=True)]) if right else ""
    )


def _moves(x: Any, y: Any) -> tuple[list[int], list[int]]:
    """Return the first point and the way from each to the next, which is shorter than absolute positions."""
    return np.diff(x, prepend=0).tolist(), np.diff(y, prepend=0).tolist()


def _sum_up(values: Values, first: int, last: int) -> Values:
    if len(values) <= SPARK_POINTS:
        return values
    bucket = (values.night - first) * SPARK_POINTS // max(last - first + 1, 1)
    order = np.lexsort((values.effect, bucket))
    _, starts, counts = np.unique(bucket[order], return_index=True, return_counts=True)
    middle = order[starts + counts // 2]
    # The x position is that of the night in the middle, not of the median, or the line would wander to and fro.
    nights = values.night[starts + counts // 2]
    return Values(nights, values.effect[middle], values.error[middle], values.rounds[middle])


def _ratios(scale: Scale) -> list[tuple[str, int]]:
    """Return round ratios, and the y position of each of them."""
    found = round_values(math.exp(scale.low), math.exp(scale.high), MOST_TICKS)
    return [(f"{ratio:.{digits}f}x", int(scale.y(math.log(ratio)))) for ratio, digits in found]


def _dates(scale: Scale) -> list[tuple[date, bool]]:
    """Return the beginnings of months or, for a short period, its ends as full dates."""
    first, last = day(scale.first), day(scale.last)
    if scale.last - scale.first < MONTHS_FROM:
        every = next(step for step in (1, 2, 7, 14, 28) if (scale.last - scale.first) / step <= MOST_DATES)
        # Dates are counted back from the newest night, which is what a reader looks for first.
        return [(day(number), True) for number in range(scale.last, scale.first - 1, -every)][::-1]
    months = (last.year - first.year) * 12 + last.month - first.month
    every = next(step for step in (1, 2, 3, 6, 12, 24, 60, 120, 1200) if months / step <= MOST_DATES)
    begun = first.year * 12 + first.month - 1
    wanted = [number for number in range(begun, begun + months + 1) if number % every == 0]
    ticks = [date(number // 12, number % 12 + 1, 1) for number in wanted]
    return [(tick, False) for tick in ticks if EDGE < scale.across(_number(tick)) < 1 - EDGE]


def _number(night: date) -> int:
    return (night - EPOCH).days


def _percent(scale: Scale, night: date) -> str:
    return f"{100 * scale.across(_number(night)):.2f}%"
