"""The size of a difference that was called slower or faster, corrected for the luck that helped to call it.

Comparisons whose mean happens to be too large, or whose rounds happen to scatter little, are called first. So the plain
mean of comparisons that are called early is too large. The correction weights each possible true mean and scatter by
how well it explains the rounds, divided by how often it would first be called at this look: the conditional likelihood.
Means on the other side of zero have no weight, because the verdict rules them out. The estimate is the weighted median.
"""

import math
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from scipy import special

from orchestrator.stats.looks import LookLevels, find_new_calls
from orchestrator.stats.paired import Estimate

# The interval leaves out this share of the weights, half of it at each end.
LEFT_OUT = 0.05
# AROUND holds true means relative to the mean of the rounds, in true standard errors. SCATTERS is the number of these
# standard errors, and MEANS the number of means for which calls are counted.
AROUND, SCATTERS, MEANS = np.linspace(-8.0, 6.0, 85), 60, 80
# Values that are less likely than this do not change the result.
NEGLIGIBLE = 1e-5


def estimate_called(found: Estimate, levels: LookLevels) -> tuple[float, float, float]:
    """Return the size of a difference that was called at the last of these looks, and the ends of its interval.

    The estimate is never larger than the mean, although the mean of late calls is too small, because a few wild rounds
    would otherwise make it huge. The interval is the one that the call rests on, with its end near zero moved towards
    zero.
    """
    *earlier, (_, level) = levels
    error, width, distance = found.standard_error, found.half_width(level), abs(found.theta)
    if error == 0:
        return found.theta, found.theta, found.theta
    # Beyond this distance, every mean is certain to be called, and the weights stay as they are there.
    farthest = _find_farthest(level, found.freedom)
    if distance > farthest * error or any(
        replace(found, differences=found.differences[:look]).p <= own_level for look, own_level in earlier
    ):
        # The difference was called at an earlier look, and another comparison kept its case open.
        earlier = []
    shifts = _find_shifts((*earlier, levels[-1]), found.freedom, min(distance / error, farthest))
    near, middle = (distance + shift * error for shift in shifts)
    distances = min(middle, distance), min(near, distance - width), distance + width
    theta, low, high = (math.copysign(float(each), found.theta) for each in distances)
    return theta, min(low, high), max(low, high)


@lru_cache(1000)
def _find_shifts(levels: LookLevels, freedom: float, distance: float) -> tuple[float, float]:
    """Return how far the near end and the median of the weights are from a mean, all in standard errors."""
    ratios, likely = _scatters(freedom / 2, freedom / 2, levels[-1][1])
    # Each root is a possible ratio of the standard error of these rounds to the true one.
    roots = np.sqrt(ratios)[:, None]
    means = distance * roots + AROUND
    chances = np.interp(means, *_count_calls(levels, freedom))
    weights = likely[:, None] * np.exp(-(AROUND**2) / 2 - chances)
    possible = means > 0
    sizes = (means / roots)[possible]
    order = np.argsort(sizes)
    shares = np.cumsum(weights[possible][order])
    near, middle = np.interp((LEFT_OUT / 2, 0.5), shares / shares[-1], sizes[order]) - distance
    return float(near), float(middle)


@cache
def _find_farthest(level: float, freedom: float) -> float:
    """Return the distance, in standard errors, from which on all means are certain to be called."""
    ratios, _ = _scatters(freedom / 2, freedom / 2, level)
    return float((_find_certain(level, freedom) - AROUND[0]) / np.sqrt(ratios[0]))


def _find_certain(level: float, freedom: float) -> float:
    """Return a true mean, in true standard errors, that is certain to be called."""
    return float(6 - 2 * special.stdtrit(freedom, level / 2))


@cache
def _count_calls(levels: LookLevels, freedom: float) -> tuple[Any, Any]:
    """Return true means in true standard errors, and the log of how often each of them is called at the last look."""
    level = levels[-1][1]
    chances, new = find_new_calls(levels)
    limits = -special.stdtrit(freedom, chances[:-1])
    ratios, likely = _scatters(freedom / 2, freedom / 2, level)
    means = np.linspace(0.0, _find_certain(level, freedom), MEANS)
    beyond = special.ndtr(means[:, None, None] - limits[:, None] * np.sqrt(ratios)) @ likely
    called = -np.diff(beyond, append=0.0) @ new
    return means, np.log(np.maximum(called, NEGLIGIBLE * level))


@cache
def _scatters(shape: float, rate: float, level: float) -> tuple[Any, Any]:
    """Return values of a gamma distribution, evenly spread on the log scale, and how likely each is.

    Rare calls have large weights, so some of the values are as unlikely as a rare call.
    """
    low, high = special.gammaincinv(shape, NEGLIGIBLE * level), special.gammainccinv(shape, NEGLIGIBLE)
    values = np.geomspace(low, high, SCATTERS)
    likely = values**shape * np.exp(-values)
    return values / rate, likely / likely.sum()
