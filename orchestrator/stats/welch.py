"""The difference between a comparison of one run and the same of another: two unpaired samples (Welch)."""

import math
from dataclasses import dataclass

from orchestrator.stats.paired import Estimate, detectable, quantile, two_sided_p

# Rounds that all came out alike have no spread; the smallest that a clock could have hidden is used instead.
LEAST_ERROR = 1e-9


@dataclass(frozen=True)
class Across:
    """The change of a comparison between two runs: of ratios, `exp(theta)` is the later one divided by the earlier."""

    earlier: Estimate
    later: Estimate

    @property
    def theta(self) -> float:
        return self.later.theta - self.earlier.theta

    @property
    def standard_error(self) -> float:
        return max(math.hypot(self.earlier.standard_error, self.later.standard_error), LEAST_ERROR)

    @property
    def freedom(self) -> float:
        """The degrees of freedom by Welch and Satterthwaite: nearly those of a run that is far less certain."""
        parts = [(run.standard_error**2, run.freedom) for run in (self.earlier, self.later)]
        below = sum(variance**2 / freedom for variance, freedom in parts)
        return sum(variance for variance, _ in parts) ** 2 / below if below else sum(freedom for _, freedom in parts)

    @property
    def p(self) -> float:
        return two_sided_p(self.theta / self.standard_error, self.freedom)

    def half_width(self, alpha: float) -> float:
        return quantile(1 - alpha / 2, self.freedom) * self.standard_error

    def smallest_visible(self, alpha: float) -> float:
        """Return the change on the metric's scale that this many rounds would show with a probability of POWER."""
        return detectable(alpha, self.freedom) * self.standard_error
