"""The ratio of two arms from its rounds: estimate, interval and smallest visible effect, on the log scale."""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import fmean

from scipy import special

POWER = 0.9


@cache
def quantile(probability: float, freedom: float) -> float:
    """Return a quantile of Student's t distribution.

    It is cached, since a run needs only a few quantiles, but for every contrast at every look.
    """
    return float(special.stdtrit(freedom, probability))


def two_sided_p(t: float, freedom: float) -> float:
    """Return the probability of a difference as large as this many standard errors if there were none."""
    return float(2 * special.stdtr(freedom, -abs(t)))


@dataclass(frozen=True)
class Estimate:
    """An estimate of the difference between two arms.

    `theta` is the mean over rounds of log(candidate) - log(baseline); `exp(theta)` is the ratio of times.
    """

    differences: tuple[float, ...]

    @cached_property
    def theta(self) -> float:
        return fmean(self.differences)

    @cached_property
    def spread(self) -> float:
        # Of few numbers, and of thousands of contrasts: faster than numpy's.
        squares = math.fsum((value - self.theta) ** 2 for value in self.differences)
        return math.sqrt(squares / (len(self.differences) - 1))

    @property
    def rounds(self) -> int:
        return len(self.differences)

    @property
    def p(self) -> float:
        """The two-sided probability of a difference as large as this if there were none."""
        if self.spread == 0:
            return 0.0 if self.theta else 1.0
        return two_sided_p(self.theta / self.standard_error, self.rounds - 1)

    def half_width(self, alpha: float) -> float:
        """Return half the width of the two-sided t interval at level 1 - alpha."""
        return quantile(1 - alpha / 2, self.rounds - 1) * self.standard_error

    @property
    def standard_error(self) -> float:
        return self.spread / math.sqrt(self.rounds)

    def smallest_visible(self, alpha: float, rounds: int | None = None) -> float:
        """Return the relative slowdown that these rounds, or `rounds` like them, show with a probability of 0.9."""
        rounds = rounds or self.rounds
        quantiles = quantile(1 - alpha / 2, rounds - 1) + quantile(POWER, rounds - 1)
        return math.expm1(quantiles * self.spread / math.sqrt(rounds))

    def rounds_for(self, effect: float, alpha: float) -> int:
        """Return about how many rounds it takes until an effect on the log scale can be seen."""
        needed = self.rounds
        while needed < 10_000:
            quantiles = quantile(1 - alpha / 2, needed - 1) + quantile(POWER, needed - 1)
            if quantiles * self.spread / math.sqrt(needed) <= effect:
                break
            needed = max(needed + 1, int(needed * 1.1))
        return needed


def estimate(baseline: dict[int, float], candidate: dict[int, float]) -> Estimate | None:
    """Estimate the difference from log times by round; return None if both arms finished fewer than two rounds."""
    common = sorted(baseline.keys() & candidate.keys())
    if len(common) < 2:
        return None
    return Estimate(tuple(candidate[number] - baseline[number] for number in common))
