"""How much harder a difference is to find where many comparisons share the allowed error. Pure."""

from statistics import NormalDist

from orchestrator.stats.comparisons import MOST_CALLED_DIFFERENT

# The share of runs in which a difference is found if nothing else is compared.
FOUND_ALONE = 0.9


def find_share_found(comparisons: int) -> float:
    """Return the share of runs in which one of many comparisons is found to differ, if no other one differs."""
    normal = NormalDist()
    size = normal.inv_cdf(1 - MOST_CALLED_DIFFERENT) + normal.inv_cdf(FOUND_ALONE)
    return normal.cdf(size - normal.inv_cdf(1 - MOST_CALLED_DIFFERENT / comparisons))
