"""The times of an arm in one round, and the ratio of two arms, which is taken turn by turn.

A machine is slower at some moments than at others. Bursts of the same turn run at nearly the same moment, so each burst
is compared with the other arm's burst of that turn. The result is the mean of the middle half of these ratios: outliers
do not move it, and it scatters less than a median if times cluster around two speeds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """The logs of an arm's bursts in one round, by visit; a figure without bursts counts as one burst."""

    visits: tuple[tuple[float, ...], ...]
    # Each visit has a number, which is nearest to that of the other arm's visit if both were open at once. A single one
    # needs none.
    sittings: tuple[int, ...] = ()

    @property
    def level(self) -> float:
        """The log of the arm's time. The visits of a round share a worker, so their mean counts as one figure."""
        return fmean(map(middle_mean, self.visits))

    def __sub__(self, other: "RoundTimes") -> float:
        """Return the log of the ratio of two arms, from the visits in which both were open at once."""
        if len(self.visits) == len(other.visits) == 1:
            return _difference(self.visits[0], other.visits[0])
        nearest = [_find_nearest(sitting, other.sittings) for sitting in self.sittings]
        back = [_find_nearest(sitting, self.sittings) for sitting in other.sittings]
        # Each item holds the places of two visits, one of each arm, that are each other's nearest.
        shared = [(mine, theirs) for mine, theirs in enumerate(nearest) if back[theirs] == mine]
        if not shared:
            return self.level - other.level
        return fmean(_difference(self.visits[mine], other.visits[theirs]) for mine, theirs in shared)


def _find_nearest(sitting: int, others: Sequence[int]) -> int:
    return min(range(len(others)), key=lambda place: abs(others[place] - sitting))


def _difference(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Compare two arms of a visit turn by turn, or as a whole if they took different numbers of turns."""
    if len(one) != len(other):
        return middle_mean(one) - middle_mean(other)
    if len(one) == 1:
        return one[0] - other[0]
    return middle_mean([mine - theirs for mine, theirs in zip(one, other, strict=True)])


class Sample(Protocol):
    """One arm's measurement in one round: a figure on the scale of its metric, or those of its bursts in order."""

    def __sub__(self, other: Any, /) -> float: ...


# A visit has the number of its round, its bursts and its sitting.
Visit = tuple[int, tuple[float, ...], int]


@dataclass(frozen=True, eq=False)
class EvenRounds(Mapping[int, RoundTimes]):
    """The rounds of an arm that made one visit with the same number of bursts in each, as nearly all arms do.

    As a table, they take less memory, and are compared all at once.
    """

    numbers: tuple[int, ...]
    bursts: NDArray[np.float64]
    sittings: tuple[int, ...]

    def __getitem__(self, number: int) -> RoundTimes:
        if number not in self.numbers:
            raise KeyError(number)
        place = self.numbers.index(number)
        return RoundTimes((tuple(self.bursts[place].tolist()),), (self.sittings[place],))

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __contains__(self, number: object) -> bool:
        return number in self.numbers


def group_visits(visits: Iterable[Visit]) -> Mapping[int, RoundTimes]:
    """Return the rounds of an arm, from its visits in their order."""
    visits = list(visits)
    numbers, bursts, sittings = zip(*visits, strict=True) if visits else ((), (), ())
    if len(set(map(len, bursts))) == 1 and all(number < later for number, later in pairwise(numbers)):
        return EvenRounds(numbers, np.array(bursts), sittings)
    return {
        number: RoundTimes(*zip(*(visit[1:] for visit in visits if visit[0] == number), strict=True))
        for number in dict.fromkeys(numbers)
    }


def compare_rounds(baseline: Mapping[int, Sample], candidate: Mapping[int, Sample]) -> dict[int, float]:
    """Return candidate - baseline for each round that both arms finished, in the order of rounds."""
    if not (isinstance(baseline, EvenRounds) and isinstance(candidate, EvenRounds)) or (
        baseline.bursts.shape[1] != candidate.bursts.shape[1]
    ):
        return {number: candidate[number] - baseline[number] for number in sorted(baseline.keys() & candidate.keys())}
    numbers, old, new = baseline.numbers, baseline.bursts, candidate.bursts
    if numbers != candidate.numbers:
        common, of_old, of_new = np.intersect1d(numbers, candidate.numbers, assume_unique=True, return_indices=True)
        numbers, old, new = tuple(common.tolist()), old[of_old], new[of_new]
    weighted = np.sort(new - old, axis=1) * _weights(old.shape[1])
    return dict(zip(numbers, np.add.accumulate(weighted, axis=1)[:, -1].tolist(), strict=True))
