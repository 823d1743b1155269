"""Detects whether the calls of an arm settle or drift: a leak, retracing, a cache that never fills."""

import math
from collections.abc import Sequence

from orchestrator.model import Drift
from orchestrator.stats.paired import Estimate

FEWEST_REPLICATES = 4
ALPHA = 0.01
# A drift smaller than this says nothing about a ratio, however sure it is.
LEAST_RISE = math.log(1.02)


def drift(rises: Sequence[float]) -> Drift | None:
    """Return the drift of an arm, or None if its calls settle or too little is known.

    There is one rise per replicate, because the replicate is the unit.
    """
    if len(rises) < FEWEST_REPLICATES:
        return None
    found = Estimate(tuple(rises))
    return Drift(rise=found.theta) if abs(found.theta) > max(found.half_width(ALPHA), LEAST_RISE) else None
