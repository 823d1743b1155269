"""Whether the calls of an arm settle or drift: a leak, retracing, a cache that never fills."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from orchestrator.model import Drift

FEWEST_REPLICATES = 4
ALPHA = 0.01
# A drift smaller than this says nothing about a ratio, however sure it is.
LEAST_RISE = math.log(1.02)


def drift(rises: Sequence[float]) -> Drift | None:
    """From one rise a replicate, for the replicate is the unit; None where calls settle, or too little is known."""
    if len(rises) < FEWEST_REPLICATES:
        return None
    values = np.array(rises)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    bound = float(stats.t.ppf(1 - ALPHA / 2, len(values) - 1)) * error
    return Drift(rise=mean) if abs(mean) > max(bound, LEAST_RISE) else None
