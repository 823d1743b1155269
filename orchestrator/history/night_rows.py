"""The rows of a series, one per night: its value, what changed around it, and the outcome if it has no time."""

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import date

from orchestrator.history.alarms.results import describe_results
from orchestrator.history.model import Point, Series, Stage, Value
from orchestrator.history.surroundings import CUTS, cuts, list_changes
from orchestrator.metrics.followed import RESULTS
from orchestrator.model import Outcome
from orchestrator.stats.paired import quantile

ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class NightRow:
    """A night of a series.

    `value` is None if the night has no time. `control` is from the same night.
    """

    night: date
    # Segments are counted from 0; the first row of a later one says in `changed` why it began.
    segment: int
    value: Value | None
    control: Value | None
    points: tuple[Point, ...]
    # These describe what changed since the last night that had a time.
    changed: tuple[str, ...]

    @property
    def stage(self) -> Stage:
        return "confirm" if any(point.stage == "confirm" for point in self.timed) else "screen"

    @property
    def timed(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.has_value)

    @property
    def build(self) -> str:
        return (self.timed or self.points)[-1].build

    @property
    def outcome(self) -> Outcome:
        """The outcome of the night; if only some of its points have a time, the time counts."""
        return "measured" if self.value else self.points[-1].outcome

    @property
    def reason(self) -> str:
        return next((point.reason for point in reversed(self.points) if point.outcome != "measured"), "")

    @property
    def result(self) -> str:
        """What the night shows about results, if the series is about them."""
        last = self.points[-1]
        return describe_results(last) if last.metric == RESULTS else ""


def find_bounds(value: Value) -> tuple[float, float]:
    """Return the interval of a value as ratios."""
    half = quantile(1 - ALPHA / 2, value.rounds - 1) * value.error
    return math.exp(value.effect - half), math.exp(value.effect + half)


def rows(series: Series) -> list[NightRow]:
    """Return the rows of a series, oldest first, segment by segment.

    A night during which something changed has a row in both segments.
    """
    values = {(number, value.night): value for number, part in enumerate(series.segments) for value in part.values}
    control = {value.night: value for part in series.segments for value in part.control}
    grouped: dict[tuple[int, date], list[Point]] = defaultdict(list)
    changed: dict[tuple[int, date], tuple[str, ...]] = {}
    segment, before = 0, None
    for point in series.points:
        if point.has_value:
            segment += bool(before and cuts(before, point))
            if before:
                changes = list_changes(before, point)
                if point.target != point.build:
                    # A version that is followed has a different build and image every night; the row already shows its
                    # build.
                    expected = (f"{point.target}: ", f"{CUTS['image']}: ")
                    changes = tuple(change for change in changes if not change.startswith(expected))
                changed.setdefault((segment, point.night), changes)
            before = point
        grouped[segment, point.night].append(point)
    return [
        NightRow(
            night=night,
            segment=number,
            value=values.get((number, night)),
            control=control.get(night),
            points=tuple(points),
            changed=changed.get((number, night), ()),
        )
        for (number, night), points in sorted(grouped.items())
    ]
