"""Detects whether calls settle or drift, and whether rounds depend on each other."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.model import Drift
from orchestrator.stats.paired import Estimate, Sample, estimate

FEWEST_REPLICATES = 4
ALPHA = 0.01
# A drift smaller than this says nothing about a ratio, however sure it is.
LEAST_RISE = math.log(1.02)
# Fewer differences say nothing of how rounds follow each other.
FEWEST_FOLLOWING = 6


def drift(rises: Sequence[float]) -> Drift | None:
    """Return the drift of an arm, or None if its calls settle or too little is known.

    There is one rise per replicate, because the replicate is the unit.
    """
    return _significant(Estimate(tuple(rises))) if len(rises) >= FEWEST_REPLICATES else None


def drift_of_ratio(baseline: Mapping[int, Sample], candidate: Mapping[int, Sample]) -> Drift | None:
    """Return the drift of the ratio of two arms inside their replicates: what both share cancels out."""
    rises = estimate(baseline, candidate)
    return _significant(rises) if rises and rises.rounds >= FEWEST_REPLICATES else None


def _significant(rises: Estimate) -> Drift | None:
    certain = max(rises.half_width(ALPHA), LEAST_RISE)
    return Drift(rise=rises.theta) if abs(rises.theta) > certain else None


def autocorrelation(differences: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Return how much rounds resemble the rounds before them, over all comparisons, and the number of such steps.

    Each comparison is taken relative to its own mean and spread. A mean that is itself estimated makes neighbours look
    opposed, by 1 in the sum; that is added back.
    """
    total, steps = 0.0, 0
    for series in differences:
        count = len(series)
        if count < FEWEST_FOLLOWING:
            continue
        mean = math.fsum(series) / count
        residuals = [value - mean for value in series]
        variance = math.fsum(value**2 for value in residuals) / count
        if variance == 0:
            continue
        products = math.fsum(earlier * later for earlier, later in itertools.pairwise(residuals)) / variance
        total += products + 1
        steps += count - 1
    return (total / steps if steps else 0.0), steps
