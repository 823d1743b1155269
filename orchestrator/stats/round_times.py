"""The times of an arm in one round, and how those of two arms are compared: turn by turn.

A machine is slower in some moments than in others. The bursts of two arms that take turns share their moments, so each
burst is compared with the one of the same turn. What is left has outliers, and few bursts: the mean of the middle half
is moved by neither, and wastes less than a median does of times that gather around two speeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

# This share of the values is left out at each end; a value may be left out in part.
LEFT_OUT = 0.25


def middle_mean(values: Sequence[float]) -> float:
    """Return the mean of the middle half of these values."""
    weights = _weights(len(values))
    return sum(map(float.__mul__, weights, sorted(values)))


@cache
def _weights(count: int) -> tuple[float, ...]:
    first, last = LEFT_OUT * count, (1 - LEFT_OUT) * count
    kept = [max(min(index + 1, last) - max(index, first), 0.0) for index in range(count)]
    return tuple(weight / sum(kept) for weight in kept)


@dataclass(frozen=True)
class RoundTimes:
    """The logs of an arm's bursts in one round, by visit; what is measured once a visit is a visit of one burst."""

    visits: tuple[tuple[float, ...], ...]

    @property
    def level(self) -> float:
        """The log of the arm's time. The visits of a round share a worker, and count once."""
        return fmean(map(middle_mean, self.visits))

    def __sub__(self, other: "RoundTimes") -> float:
        """Return the log of the ratio of two arms."""
        if len(self.visits) != len(other.visits):
            return self.level - other.level
        return fmean(map(_difference, self.visits, other.visits))


def _difference(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the difference of two arms in a visit; if they took a different number of turns, that of their levels."""
    if len(one) != len(other):
        return middle_mean(one) - middle_mean(other)
    return middle_mean([mine - theirs for mine, theirs in zip(one, other, strict=True)])
