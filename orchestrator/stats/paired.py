"""The difference of two arms, estimated from their rounds, with its interval and power, on the metric's scale."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import fmean
from typing import Any

import numpy as np
from scipy import special

from orchestrator.stats.round_times import Sample, compare_rounds

POWER = 0.9
# If there are at least this many rounds, a tenth of them is trimmed from each end, so that a disturbed round can
# neither cause nor hide a difference.
TRIM_FROM, TRIMMED = 10, 0.1
# If rounds deviate to one side, the mean of all rounds lies on that side of the trimmed mean, and the interval reaches
# farther there by the same distance. The distance is at most this share of the half width, because a single round must
# not hide a difference.
MOST_FARTHER = 0.4


@cache
def quantile(probability: float, freedom: float) -> float:
    """Return a quantile of Student's t distribution.

    It is cached, since a run needs only a few quantiles, but for every comparison at every look.
    """
    return float(special.stdtrit(freedom, probability))


@cache
def detectable(level: float, freedom: float) -> float:
    """Return how many standard errors from zero a mean must be to be found different with a probability of POWER.

    This is the noncentral t distribution: the standard error is itself estimated.
    """
    return float(special.nctdtrinc(freedom, 1 - POWER, quantile(1 - level / 2, freedom)))


def two_sided_p(t: float, freedom: float) -> float:
    """Return the probability of at least this many standard errors if the arms did not differ."""
    return float(2 * special.stdtr(freedom, -abs(t)))


@dataclass(frozen=True)
class Prior:
    """The variance of a round according to other comparisons, and the degrees of freedom that it is worth."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Estimate:
    """An estimate of the difference between two arms.

    `theta` is the mean over rounds of candidate - baseline, without the most extreme rounds if there are enough rounds.
    On the log scale `exp(theta)` is their ratio. Figures that are read in steps of `resolution` may be equal in all
    rounds by luck, so the standard error is never smaller than `resolution`.
    """

    differences: tuple[float, ...]
    resolution: float = 0.0
    prior: Prior | None = None
    # The standard error is multiplied by this factor because rounds depend on each other.
    widened: float = 1.0

    @property
    def rounds(self) -> int:
        return len(self.differences)

    def cut(self, rounds: int) -> "Estimate":
        """Return the estimate from the first rounds only, at most this many of them."""
        return self if rounds >= self.rounds else replace(self, differences=self.differences[:rounds])

    def adjust(self, *, prior: Prior | None, widened: float) -> "Estimate":
        """Return the estimate with another prior and another factor. Values already computed are kept."""
        adjusted = object.__new__(Estimate)
        adjusted.__dict__.update(self.__dict__, prior=prior, widened=widened)
        return adjusted

    @property
    def trimmed(self) -> int:
        """The number of rounds that are left out at each end."""
        return count_trimmed(self.rounds)

    @property
    def freedom(self) -> float:
        return freedom_of(self.rounds) + self.borrowed

    @cached_property
    def _ordered(self) -> tuple[float, ...]:
        return tuple(sorted(self.differences))

    @cached_property
    def theta(self) -> float:
        return fmean(self._ordered[self.trimmed : self.rounds - self.trimmed])

    @cached_property
    def lean(self) -> float:
        """How far the mean of all rounds is from `theta`, which leaves some out."""
        return fmean(self._ordered) - self.theta

    @property
    def standard_error(self) -> float:
        """The standard error of `theta`, to which the prior contributes by its degrees of freedom."""
        if self.prior is None:
            return self.widened * self._own_error
        own = freedom_of(self.rounds) * self._own_error**2 * self.rounds
        together = self.prior.freedom * self.prior.variance + own
        return self.widened * math.sqrt(together / (self.freedom * self.rounds))

    @cached_property
    def winsorized(self) -> tuple[float, ...]:
        """The rounds in their order, with the most extreme ones moved to the limits at which they are trimmed."""
        low, high = self._ordered[self.trimmed], self._ordered[self.rounds - self.trimmed - 1]
        return tuple(min(max(value, low), high) for value in self.differences)

    @cached_property
    def _own_error(self) -> float:
        """The standard error from these rounds alone: that of a trimmed mean according to Yuen."""
        mean = fmean(self.winsorized)
        # This is faster than numpy for a few numbers, and runs for thousands of comparisons.
        squares = math.fsum((value - mean) ** 2 for value in self.winsorized)
        kept = self.rounds - 2 * self.trimmed
        return max(math.sqrt(squares / (kept * (kept - 1))), self.resolution)

    @property
    def borrowed(self) -> float:
        """The degrees of freedom that other comparisons add to those of these rounds."""
        return self.prior.freedom if self.prior else 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of one round, computed from the standard error and the number of rounds."""
        return self.standard_error * math.sqrt(self.rounds)

    @property
    def own_spread(self) -> float:
        """The spread according to these rounds alone, without the prior."""
        return self.widened * self._own_error * math.sqrt(self.rounds)

    @property
    def p(self) -> float:
        """The two-sided probability of a difference as large as this if there were none."""
        if self.standard_error == 0:
            return 0.0 if self.theta else 1.0
        return two_sided_p(shorten(self.theta, self.lean) / self.standard_error, self.freedom)

    def half_width(self, level: float) -> float:
        """Return half the width of the two-sided interval that misses the truth with this probability.

        It is the half towards zero, which decides whether there is a difference.
        """
        return lengthen(
            quantile(1 - level / 2, self.freedom) * self.standard_error, -find_outward_lean(self.lean, self.theta)
        )

    def reach(self, level: float) -> float:
        """Return the other half of that interval, away from zero, which decides whether a difference is small."""
        return lengthen(
            quantile(1 - level / 2, self.freedom) * self.standard_error, find_outward_lean(self.lean, self.theta)
        )


def find_outward_lean(lean: float, theta: float) -> float:
    """Return how much farther from zero the mean `theta + lean` is than `theta`."""
    return lean if theta >= 0 else -lean


def lengthen(width: float, farther: float) -> float:
    """Return the half width of an interval that reaches farther on one side."""
    return width + min(max(farther, 0.0), MOST_FARTHER * width)


def shorten(theta: float, lean: float) -> float:
    """Return a distance that exceeds the usual half width exactly if the estimate exceeds the lengthened one."""
    distance = abs(theta)
    return max(distance + min(find_outward_lean(lean, theta), 0.0), distance / (1 + MOST_FARTHER))


def count_trimmed(rounds: int) -> int:
    return int(TRIMMED * rounds) if rounds >= TRIM_FROM else 0


def freedom_of(rounds: int) -> int:
    return rounds - 2 * count_trimmed(rounds) - 1


def estimate(
    baseline: Mapping[int, Sample], candidate: Mapping[int, Sample], *, resolution: float = 0.0
) -> Estimate | None:
    """Estimate the difference from samples by round; return None if the arms share fewer than two rounds."""
    differences = tuple(compare_rounds(baseline, candidate).values())
    return Estimate(differences, resolution) if len(differences) >= 2 else None


# If there are at most ten rounds, all flips are used. If there are more, a random sample of this many flips is used.
FLIPS = 1024
# Sums of the same values in different orders may differ by this share.
ROUNDING = 1e-9


def hodges_lehmann(differences: Any) -> Any:
    """Return the median of all pairwise means of a row, or of each row of a table."""
    values = np.asarray(differences)
    one, other = _pairs(values.shape[-1])
    return np.median((values[..., one] + values[..., other]) / 2, axis=-1)


@cache
def _pairs(count: int) -> Any:
    return np.triu_indices(count)


def sign_flip_p(differences: tuple[float, ...]) -> float:
    """Return how often rounds with randomly swapped arms have a mean at least as large; two-sided."""
    values = np.array(differences)
    sums = np.abs(_flips(len(values)) @ values)
    # The flip that changes nothing must be counted, even if its sum is rounded differently.
    return np.count_nonzero(sums >= sums[0] * (1 - ROUNDING)) / len(sums)


@cache
def _flips(rounds: int) -> Any:
    """Return every way to swap the arms of this many rounds, or a sample of them; the first swaps nothing.

    scipy's permutation test draws these again for each comparison. Here they are drawn once, since a run may have
    thousands of comparisons.
    """
    if 2**rounds <= FLIPS:
        bits = np.arange(2**rounds)[:, None] >> np.arange(rounds) & 1
        return 1.0 - 2.0 * bits
    drawn = np.random.default_rng(1).choice([-1.0, 1.0], (FLIPS, rounds))
    return np.vstack([np.ones(rounds), drawn])
