"""SVG drawings that fill the available width, need no script, and are small because a page has hundreds of them.

Paths are stretched to the available width. Text and marks must keep their shape, so they are placed by percentages.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from orchestrator.reports.html.escape import escape_value

# The whole width has this many units.
WIDTH = 2000
# This share of a scale is left free at each end.
ROOM = 0.03
# A scale spans at least this much, because a single value would give it no width.
LEAST_SPAN = 0.1
# Smaller and larger figures are drawn at these limits, which still have logarithms and ticks.
TINY, HUGE = 1e-290, 1e290
LARGEST_LOG = 695.0


def element(name: str, *inside: str, **attributes: object) -> Markup:
    """Return an element; everything that is not Markup is escaped."""
    written = "".join(
        f' {attribute.rstrip("_").replace("_", "-")}="{escape(escape_value(value))}"'
        for attribute, value in attributes.items()
        if value not in (None, "")
    )
    text = "".join(escape(escape_value(part)) for part in inside)
    # HTML accepts self-closing elements only inside drawings.
    return Markup(f"<{name}{written}>{text}</{name}>" if text or name != "path" else f"<path{written}/>")  # noqa: S704


@dataclass(frozen=True)
class AxisScale:
    """A scale from `low` to `high`, which are logarithms if `is_log`."""

    low: float
    high: float
    is_log: bool = True

    def share(self, value: float) -> float:
        """Return the position of a value, from 0 to 1 on the scale; values far outside are clamped."""
        place = _log(value) if self.is_log else value
        return min(max((place - self.low) / (self.high - self.low), -9.0), 10.0)

    def x(self, value: float) -> int:
        return round(self.share(value) * WIDTH)

    def percent(self, value: float) -> str:
        return f"{100 * self.share(value):.2f}%"

    def ticks(self, most: int) -> list[tuple[float, int]]:
        """Return round values on the scale, each with its number of decimals."""
        if self.is_log:
            return round_values(math.exp(max(self.low, -LARGEST_LOG)), math.exp(min(self.high, LARGEST_LOG)), most)
        return linear_values(self.low, self.high, most)


def fit_scale(values: Iterable[float | None], *, is_log: bool = True) -> AxisScale:
    """Return a scale that covers all these values."""
    known = [value for value in values if value is not None and math.isfinite(value) and (value > 0 or not is_log)]
    places = [_log(value) if is_log else value for value in known] or [0.0]
    middle, span = (min(places) + max(places)) / 2, max(max(places) - min(places), LEAST_SPAN)
    half = span * (0.5 + ROOM)
    return AxisScale(middle - half, middle + half, is_log)


def _log(value: float) -> float:
    return math.log(min(max(value, TINY), HUGE))


def linear_values(low: float, high: float, most: int) -> list[tuple[float, int]]:
    """Return the multiples of a round step in a range."""
    power = math.floor(math.log10((high - low) / most))
    step = next(
        factor * 10.0**up
        for up in (power, power + 1)
        for factor in (1, 2, 5)
        if (high - low) / (factor * 10.0**up) <= most
    )
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(number * step, digits) for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def round_values(low: float, high: float, most: int) -> list[tuple[float, int]]:
    """Return round values in a range of positive figures; in a wide one these are 1, 2 and 5 times a power of ten."""
    if high < 8 * low:
        return linear_values(low, high, most)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [
        (factor * 10.0**power, max(0, -power))
        for power in powers
        for factor in (1, 2, 5)
        if low <= factor * 10.0**power <= high
    ]
    return found[:: math.ceil(len(found) / (2 * most))] if len(found) > 2 * most else found


def stretch(height: int, *paths: str, box: Sequence[float] = (), **attributes: object) -> Markup:
    """Return paths stretched to the available width; with a `box`, their coordinates are those of the box."""
    shown = " ".join(f"{part:.6g}" for part in box or (0, 0, WIDTH, height))
    return element("svg", *paths, height=height, viewBox=shown, preserveAspectRatio="none", **attributes)


def draw_path(d: str, kind: str, title: str = "") -> Markup:
    return element("path", *([element("title", title)] if title else []), class_=kind, d=d)


def place_text(words: str, x: str, y: int, kind: str = "", title: str = "") -> Markup:
    return element("text", words, *([element("title", title)] if title else []), class_=kind, x=x, y=y)


def write_line(points: Sequence[tuple[int, int]]) -> str:
    """Return the data of a path through these points, as relative moves, which are shorter than positions."""
    moves = [f"{x - before_x}{_part(y - before_y)}" for (before_x, before_y), (x, y) in pairwise(points)]
    return f"M{points[0][0]} {points[0][1]}" + ("l" + " ".join(moves) if moves else "h0")


def write_dots(points: Sequence[tuple[int, int]]) -> str:
    """Return the data of a path that shows a dot at each point, by its round line ends."""
    moves = [f"m{x - before_x}{_part(y - before_y)}h0" for (before_x, before_y), (x, y) in pairwise([(0, 0), *points])]
    return "".join(moves)


def _part(figure: int) -> str:
    """Return a figure for the place after another one, with a blank between them unless it has a minus sign."""
    return f"{figure}" if figure < 0 else f" {figure}"
