"""The mean of several ratios, and its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from orchestrator.model import Contrast


@dataclass(frozen=True)
class MeanRatio:
    """The geometric mean of the ratios of some cases, and the number of these cases."""

    ratio: float
    ci_low: float
    ci_high: float
    cases: int


def mean_ratio(contrasts: Sequence[Contrast]) -> MeanRatio | None:
    """Return the geometric mean of the ratios that have an interval, or None if there are none.

    Cases may err together, because they share workers and moments. The mean of the ends of their intervals holds even
    if they all do.
    """
    figures = [
        (math.log(each.ratio), math.log(each.ci_low), math.log(each.ci_high))
        for each in contrasts
        if each.ratio and each.ci_low and each.ci_high
    ]
    if not figures:
        return None
    ratio, low, high = (math.exp(fmean(logs)) for logs in zip(*figures, strict=True))
    return MeanRatio(ratio, low, high, len(figures))
