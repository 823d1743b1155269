"""Whether calls settle: how long the warm-up is, and whether what comes after it drifts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

MAD_TO_SIGMA = 1.4826
CALM = 3


def warmup(times: Sequence[float], least: int, most: int) -> int:
    """How many calls to leave out: up to the first of three in a row that are like the later half."""
    logs = np.log(np.maximum(times, 1.0))
    half = logs[len(logs) // 2 :]
    center = float(np.median(half))
    spread = MAD_TO_SIGMA * float(np.median(np.abs(half - center)))
    like = logs <= center + 3 * max(spread, 0.01)
    for start in range(len(logs) - CALM + 1):
        if like[start : start + CALM].all():
            return min(max(start, least), most)
    return most


def calls_worth(call_s: float, replicate_s: float, within: float, between: float, least: int, most: int) -> int:
    """How many calls a replicate should time (Kalibera and Jones): more where calls scatter, or a replicate is dear."""
    if call_s <= 0 or between <= 0:
        return most
    best = math.sqrt((replicate_s / call_s) * (within**2 / between**2))
    return min(max(math.ceil(best), least), most)


def scatter(times: Sequence[float]) -> float:
    """The spread of log times inside one replicate, robust against single spikes."""
    logs = np.log(np.maximum(times, 1.0))
    return MAD_TO_SIGMA * float(np.median(np.abs(logs - np.median(logs))))


@dataclass(frozen=True)
class Drift:
    """How log times change from call to call, over the replicates of an arm."""

    per_call: float
    calls: int
    certain: bool

    @property
    def total(self) -> float:
        """Over the whole window of a replicate."""
        return self.per_call * self.calls


def drift(slopes: Sequence[float], calls: int, alpha: float = 0.01) -> Drift | None:
    """One slope a replicate, for the replicate is the unit; None with fewer than three."""
    if len(slopes) < 3:
        return None
    values = np.array(slopes)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    bound = float(stats.t.ppf(1 - alpha / 2, len(values) - 1)) * error
    return Drift(mean, calls, abs(mean) > bound)


def slope(times: Sequence[float]) -> float:
    """Theil and Sen's slope of log time by call: one slow call does not tilt it."""
    logs = np.log(np.maximum(times, 1.0))
    return float(stats.theilslopes(logs).slope)
