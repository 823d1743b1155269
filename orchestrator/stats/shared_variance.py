"""How much rounds scatter, as the comparisons of one metric in one run say it together.

Four rounds say little about their own scatter, so that a difference has to be many standard errors from zero. But the
comparisons of a run scatter alike, as far as they do: by how much they differ in that, their variances tell. This is
the moderated t statistic of Smyth (2004).
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, variance

import numpy as np
from scipy import special

from orchestrator.stats.paired import Estimate, Prior

# Fewer comparisons do not tell by how much their variances differ.
FEWEST_COMPARISONS = 8
# What the others say counts at most as much as four more rounds: variances may differ in a way that few rounds hide.
MOST_FREEDOM = 4.0


def share_variance(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return these estimates with a part of what all of them say of the variance of a round."""
    prior = find_prior(estimates)
    return [replace(each, prior=prior) for each in estimates] if prior else list(estimates)


def find_prior(estimates: Sequence[Estimate]) -> Prior | None:
    """Return what these estimates say together of the variance of a round; None if they are too few to tell."""
    known = [(each.spread**2, each.freedom) for each in estimates if each.spread > 0]
    return fit_prior(known) if len(known) >= FEWEST_COMPARISONS else None


def fit_prior(variances: Sequence[tuple[float, float]]) -> Prior:
    """Return what these variances, each with its degrees of freedom, have in common, by the moments of their logs."""
    halves = np.array([freedom / 2 for _, freedom in variances])
    logs = np.log([value for value, _ in variances]) - special.digamma(halves) + np.log(halves)
    beyond_chance = variance(logs.tolist()) - fmean(special.zeta(2, halves).tolist())
    freedom = min(2 * _invert_trigamma(beyond_chance), MOST_FREEDOM) if beyond_chance > 0 else MOST_FREEDOM
    log = fmean(logs.tolist()) + float(special.digamma(freedom / 2)) - float(np.log(freedom / 2))
    return Prior(float(np.exp(log)), freedom)


def _invert_trigamma(value: float) -> float:
    """Return the number whose trigamma this is, by Newton's method on the inverse."""
    number = 0.5 + 1 / value
    for _ in range(20):
        trigamma = float(special.zeta(2, number))
        number += trigamma * (1 - trigamma / value) / (-2 * float(special.zeta(3, number)))
    return number
