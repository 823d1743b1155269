"""The change of a comparison between two runs, which are two unpaired samples (Welch)."""

import math
from dataclasses import dataclass

from orchestrator.stats.paired import Estimate, detectable, find_outward_lean, lengthen, quantile, shorten, two_sided_p


@dataclass(frozen=True)
class BetweenRunVariance:
    """The variance of a ratio between runs on one machine, beyond what rounds explain; earlier runs provide it."""

    variance: float
    freedom: int


# Rounds that are all alike have no spread, so the smallest error that a clock could have hidden is used instead.
LEAST_ERROR = 1e-9


@dataclass(frozen=True)
class ChangeBetweenRuns:
    """The change of a comparison between two runs; for ratios, `exp(theta)` is the later divided by the earlier."""

    earlier: Estimate
    later: Estimate
    between: BetweenRunVariance | None = None

    @property
    def theta(self) -> float:
        return self.later.theta - self.earlier.theta

    @property
    def standard_error(self) -> float:
        return max(math.sqrt(sum(variance for variance, _ in self._parts)), LEAST_ERROR)

    @property
    def freedom(self) -> float:
        """The degrees of freedom according to Welch and Satterthwaite: nearly those of the least certain part."""
        parts = self._parts
        below = sum(variance**2 / freedom for variance, freedom in parts)
        return sum(variance for variance, _ in parts) ** 2 / below if below else sum(freedom for _, freedom in parts)

    @property
    def _parts(self) -> list[tuple[float, float]]:
        """The variances that make up that of the change, each with its degrees of freedom."""
        parts = [(run.standard_error**2, float(run.freedom)) for run in (self.earlier, self.later)]
        return [*parts, (2 * self.between.variance, float(self.between.freedom))] if self.between else parts

    @property
    def p(self) -> float:
        return two_sided_p(shorten(self.theta, self.lean) / self.standard_error, self.freedom)

    @property
    def lean(self) -> float:
        return self.later.lean - self.earlier.lean

    def half_width(self, alpha: float) -> float:
        return lengthen(
            quantile(1 - alpha / 2, self.freedom) * self.standard_error, -find_outward_lean(self.lean, self.theta)
        )

    def reach(self, alpha: float) -> float:
        return lengthen(
            quantile(1 - alpha / 2, self.freedom) * self.standard_error, find_outward_lean(self.lean, self.theta)
        )

    def smallest_visible(self, alpha: float) -> float:
        """Return the change on the metric's scale that this many rounds would show with a probability of POWER."""
        return detectable(alpha, self.freedom) * self.standard_error
