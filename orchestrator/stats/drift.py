"""Detects whether calls settle or drift."""

import math
from collections.abc import Mapping, Sequence

from orchestrator.model import Drift
from orchestrator.stats.paired import Estimate, estimate
from orchestrator.stats.round_times import Sample

FEWEST_REPLICATES = 4
ALPHA = 0.01
# A smaller drift does not matter for a ratio, however certain it is.
LEAST_RISE = math.log(1.02)


def drift(rises: Sequence[float]) -> Drift | None:
    """Return the drift of an arm, or None if its calls settle or too little is known.

    There is one rise per replicate, because the replicate is the unit.
    """
    return _significant(Estimate(tuple(rises))) if len(rises) >= FEWEST_REPLICATES else None


def drift_of_ratio(baseline: Mapping[int, Sample], candidate: Mapping[int, Sample]) -> Drift | None:
    """Return the drift of the ratio of two arms inside their replicates; drift that both share cancels out."""
    rises = estimate(baseline, candidate)
    return _significant(rises) if rises and rises.rounds >= FEWEST_REPLICATES else None


def _significant(rises: Estimate) -> Drift | None:
    is_certain = abs(rises.theta) > LEAST_RISE and abs(rises.theta) > rises.half_width(ALPHA)
    return Drift(rise=rises.theta) if is_certain else None
