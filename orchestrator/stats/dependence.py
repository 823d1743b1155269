"""The dependence of rounds on each other, and by how much wider it makes an interval.

An interval assumes that rounds are independent. If a round resembles the one before it, or if a ratio moves during the
run, rounds contain less information. Both are tested over all comparisons that are judged together, since one alone has
too few rounds.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special

from orchestrator.stats.limits import FEWEST_COMPARISONS, FEWEST_SHARED
from orchestrator.stats.paired import Estimate
from orchestrator.stats.resemblance import Floats, find_common_share

# A comparison with fewer rounds shows neither of these, but several comparisons with three rounds together do.
FEWEST_ROUNDS = 4
# Rounds resemble each other if their products exceed this many standard errors. The limit is lower than usual, since a
# single comparison could never exceed a higher one. One run in ten exceeds it by chance, which costs it some rounds.
RESEMBLE = 1.25
# A correlation below LEAST hardly matters, and one above MOST cannot be distinguished from 1.
LEAST, MOST = 0.2, 0.9
# Ratios move if chance makes slopes this steep with at most this probability.
MOVE = 0.02
LEAST_CHANCE = 1e-300
GRID = np.linspace(0.0, MOST, 46)


@dataclass(frozen=True)
class Dependence:
    """The dependence of rounds on each other that chance does not explain.

    `correlation` is that of a round with the one before it, and `moves` says whether ratios move during the run.
    """

    correlation: float = 0.0
    moves: bool = False

    def __bool__(self) -> bool:
        return self.correlation > 0 or self.moves

    def __str__(self) -> str:
        resemble = f"rounds resemble the rounds before them (correlation {self.correlation:.2f})"
        found = [resemble] * (self.correlation > 0) + ["ratios move during the run"] * self.moves
        return " and ".join(found)

    def widen(self, estimate: Estimate) -> Estimate:
        """Return an estimate with the standard error that it has if its rounds depend on each other like this."""
        times = math.sqrt((1 + self.correlation) / (1 - self.correlation))
        if self.moves and _is_telling(estimate.winsorized):
            slope, error = map(float, _fit_slopes(np.array(estimate.winsorized)))
            # The ratio of the whole run may lie anywhere between those of the first round and the last.
            between = max(0.0, slope**2 - error**2) * (estimate.rounds**2 - 1) / 12
            times = max(times, math.sqrt(1 + between / estimate.standard_error**2))
        return estimate.adjust(prior=estimate.prior, widened=times)


def find_dependence(estimates: Iterable[Estimate]) -> Dependence:
    """Return how the rounds of these comparisons depend on each other; few or equal rounds show nothing."""
    rows = [each.winsorized for each in estimates if _is_telling(each.winsorized)]
    if len(rows) < FEWEST_COMPARISONS:
        rows = [row for row in rows if len(row) >= FEWEST_ROUNDS]
    if not rows:
        return Dependence()
    # This many comparisons count as one, depending on how much they deviate together in each round.
    alike = 1 + (len(rows) - 1) * find_common_share(rows)
    by_rounds: dict[int, list[Sequence[float]]] = defaultdict(list)
    for row in rows:
        by_rounds[len(row)].append(row)
    tables = [np.array(own) for own in by_rounds.values()]
    return Dependence(_find_correlation(tables, alike), _find_movement(tables, alike))


def _is_telling(rounds: Sequence[float]) -> bool:
    return len(rounds) >= FEWEST_SHARED and max(rounds) > min(rounds)


def _find_correlation(tables: Sequence[Floats], alike: float) -> float:
    """Return the correlation of rounds with the ones before them, or 0 if it is small or chance explains it.

    Each table has the comparisons with the same number of rounds.
    """
    products, variance, expected = 0.0, 0.0, np.zeros(len(GRID))
    for rows in tables:
        strays, (number, count) = rows - rows.mean(axis=1, keepdims=True), rows.shape
        lagged = (strays[:, 1:] * strays[:, :-1]).sum(axis=1) / (strays**2).mean(axis=1)
        products += float(lagged.sum()) + number
        variance += number * (count - 2) ** 2 / (count - 1)
        expected += number * (count * _expect(count) + 1)
    if products <= RESEMBLE * math.sqrt(variance * alike):
        return 0.0
    correlation = float(np.interp(products, expected, GRID))
    return correlation if correlation >= LEAST else 0.0


@cache
def _expect(rounds: int) -> Floats:
    """Return the expected lag-1 products of this many rounds relative to their squares, per correlation of the grid.

    Rounds are taken relative to their own mean, so neighbours seem opposed if there are few rounds.
    """
    apart = 1 - GRID
    # `times` is the variance of a sum of rounds relative to that of independent rounds.
    times = (1 + GRID) / apart - 2 * GRID * (1 - GRID**rounds) / (rounds * apart**2)
    ends = 2 * (1 - GRID**rounds) / (rounds * apart)
    expected: Floats = ((rounds - 1) * GRID - (rounds + 1) * times / rounds + ends) / (rounds - times)
    return expected


def _find_movement(tables: Sequence[Floats], alike: float) -> bool:
    """Return whether the slopes of all comparisons together are steeper than chance explains (Fisher's method)."""
    chances, count = 0.0, sum(map(len, tables))
    for rows in tables:
        slopes, errors = _fit_slopes(rows)
        t = np.divide(abs(slopes), errors, out=np.full(len(rows), np.inf), where=errors > 0)
        ps = 2 * special.stdtr(rows.shape[1] - 2, -t)
        chances -= 2 * float(np.log(np.maximum(ps, LEAST_CHANCE)).sum())
    return float(special.chdtrc(2 * count / alike, chances / alike)) <= MOVE


def _fit_slopes(rows: Floats) -> tuple[Floats, Floats]:
    """Return by how much each round of a row differs from the one before it on average, with standard errors."""
    count = rows.shape[-1]
    numbers = np.arange(count) - (count - 1) / 2
    strays, below = rows - rows.mean(axis=-1, keepdims=True), float(numbers @ numbers)
    slopes = strays @ numbers / below
    rest = ((strays - slopes[..., None] * numbers) ** 2).sum(axis=-1) / (count - 2)
    return slopes, np.sqrt(rest / below)
