"""A second opinion on an estimate, which leans on no normal distribution: Hodges and Lehmann's, and sign flips."""

import numpy as np
from scipy import stats

from orchestrator.stats.paired import Estimate

# Exact up to ten rounds, and a random sample of as many flips beyond.
FLIPS = 1024
# Counts that are the same in every round have no standard error, and yet two sums of them may differ.
ROUNDING = 1e-9


def hodges_lehmann(differences: tuple[float, ...]) -> float:
    """The median of all pairwise means."""
    values = np.array(differences)
    return float(np.median(np.add.outer(values, values)[np.triu_indices(len(values))] / 2))


def disagrees(second: float, first: Estimate) -> bool:
    """Beyond the first one's standard error: a few rounds then carry the mean, and the verdict with it."""
    return abs(second - first.theta) > max(first.standard_error, ROUNDING)


def sign_flip_p(differences: tuple[float, ...]) -> float:
    """How often rounds whose arms are swapped at random show as large a mean; two-sided."""
    found = stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples", vectorized=True, n_resamples=FLIPS, rng=1
    )
    return float(found.pvalue)
