"""Whether the rounds that are left can still decide a comparison of times."""

import math
from collections.abc import Sequence

from orchestrator.model import Comparison
from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.looks import Stretch, make_schedule
from orchestrator.stats.paired import freedom_of, quantile
from orchestrator.stats.verdict import smallest_shown

# A comparison that would be decided with less than this probability is given up.
LEAST_CHANCE = 0.05


def can_decide(comparison: Comparison, ahead: int, looks: Sequence[int], margin: float) -> bool:
    """Return whether this many further rounds may decide an open comparison, if they vary like those until now.

    The mean of all rounds then strays from the present one by a known amount. Without a known spread, it may.
    """
    spread, now, estimate = comparison.spread, comparison.rounds, comparison.estimate
    if spread is None or estimate is None or now < 2:
        return True
    end = now + ahead
    half_width = quantile(1 - _level(end, looks) / 2, freedom_of(end)) * spread / math.sqrt(end)
    if half_width < math.log1p(margin):
        return True
    strays = spread * math.sqrt(1 / now - 1 / end)
    return abs(estimate) + quantile(1 - LEAST_CHANCE, now - 1) * strays > half_width


def find_smallest_shown(comparison: Comparison, ahead: int, looks: Sequence[int]) -> float:
    """Return the smallest difference that a comparison typically shows after this many further rounds."""
    end = comparison.rounds + ahead
    return smallest_shown(comparison.spread or 0.0, end, _level(end, looks))


def _level(end: int, looks: Sequence[int]) -> float:
    """Return the level at which a run that ends with this round is judged there."""
    return make_schedule([Stretch(tuple(looks), end)]).level(end, DIFFERENCE_ERROR)
