"""A second opinion on an estimate, from methods that lean on no normal distribution."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from orchestrator.stats.paired import Estimate

# Below this many rounds the smallest p that flipping signs can give is too large to say anything.
FEWEST_ROUNDS = 8


@dataclass(frozen=True)
class Second:
    """The Hodges-Lehmann estimate, and the sign-flip p where there are rounds enough for one."""

    theta: float
    p: float | None

    def disagrees(self, first: Estimate) -> bool:
        """With the sign of an estimate, or with its size by more than its standard error."""
        apart = abs(self.theta - first.theta)
        return apart > first.standard_error or (self.theta * first.theta < 0 and apart > 0.5 * first.standard_error)


def second_opinion(differences: tuple[float, ...]) -> Second:
    values = np.array(differences)
    pairs = np.add.outer(values, values)[np.triu_indices(len(values))] / 2
    p = None
    if len(values) >= FEWEST_ROUNDS:
        flipped = stats.permutation_test(
            (values,), np.mean, permutation_type="samples", n_resamples=4095, rng=np.random.default_rng(0)
        )
        p = float(flipped.pvalue)
    return Second(float(np.median(pairs)), p)
