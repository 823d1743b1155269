"""How many calls a percentile needs in each round: few calls reach the highest percentiles, so these scatter most."""

import math
from collections.abc import Sequence

import numpy as np

# Of the calls beyond a percentile, the share on either side of it that its density is read from.
BESIDE = 0.5


def count_calls(calls_ns: Sequence[int], percent: int, error: float) -> int:
    """Return how many calls give the log of a percentile this standard error, if the calls scatter like these.

    Calls that resemble each other, as in a moment in which another process is busy, are worth fewer.
    """
    share = percent / 100
    width = BESIDE * min(share, 1 - share)
    logs = np.log(np.maximum(np.array(calls_ns), 1))
    low, high = np.quantile(logs, (share - width, share + width))
    return math.ceil(share * (1 - share) * (float(high - low) / (2 * width * error)) ** 2)
