"""Further figures for a report, free of normal distributions: Hodges and Lehmann's estimate, and sign flips."""

from functools import cache
from typing import Any

import numpy as np

# Exact up to ten rounds, and a random sample of as many flips beyond.
FLIPS = 1024
# Counts that are the same in every round have no standard error, and yet two sums of them may differ.
ROUNDING = 1e-9


def hodges_lehmann(differences: tuple[float, ...]) -> float:
    """Return the median of all pairwise means."""
    values = np.array(differences)
    one, other = _pairs(len(values))
    return float(np.median((values[one] + values[other]) / 2))


@cache
def _pairs(count: int) -> Any:
    return np.triu_indices(count)


def sign_flip_p(differences: tuple[float, ...]) -> float:
    """Return how often rounds whose arms are swapped at random show as large a mean; two-sided."""
    values = np.array(differences)
    sums = np.abs(_flips(len(values)) @ values)
    # The flip that changes nothing is one of them; its sum, taken in another order, must not miss itself.
    return float(np.mean(sums >= sums[0] * (1 - ROUNDING)))


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
