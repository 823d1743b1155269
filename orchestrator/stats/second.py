"""A second opinion on an estimate: Hodges and Lehmann's, which leans on no normal distribution."""

import numpy as np

from orchestrator.stats.paired import Estimate


def hodges_lehmann(differences: tuple[float, ...]) -> float:
    """The median of all pairwise means."""
    values = np.array(differences)
    return float(np.median(np.add.outer(values, values)[np.triu_indices(len(values))] / 2))


def disagrees(second: float, first: Estimate) -> bool:
    """Beyond the first one's standard error: a few rounds then carry the mean, and the verdict with it."""
    return abs(second - first.theta) > first.standard_error
