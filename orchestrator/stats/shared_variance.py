"""How much rounds scatter, as the comparisons of one metric in one run say it together.

Four rounds say little about their own scatter, so that a difference has to be many standard errors from zero. But the
comparisons of a run scatter alike, as far as they do: by how much they differ in that, their variances tell. This is
the moderated t statistic of Smyth (2004).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from orchestrator.stats.limits import FEWEST_COMPARISONS
from orchestrator.stats.paired import Estimate, Prior
from orchestrator.stats.resemblance import find_common_share

# What the others say counts at most as much as eight more rounds: variances may differ in a way that few rounds hide.
MOST_FREEDOM = 8.0
# Variances are taken to differ by this many standard errors more than they seem to.
CAUTION = 0.25
# Of the error of equal arms, what is given out where variances are shared. The rest is for comparisons that differ in
# their scatter as no distribution of the theory does, and for those that stray together.
OF_SHARED = 0.92
# A row that scatters more than chance explains in all rows but this share borrows nothing.
LOUDER = 0.02
# A smaller difference of log variances counts as none.
LEAST_APART = 1e-6


def share_variance(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return these estimates with a part of what all of them say of the variance of a round; of few, as they are.

    One that is louder than all others stays as it is: what they say would make it too certain. Others may have more
    rounds by now. Those are left out, so that each is judged as it was at its last look, whatever follows.
    """
    priors = {rounds: _find_prior(estimates, rounds) for rounds in {each.rounds for each in estimates}}
    lent = []
    for each in estimates:
        prior = priors[each.rounds]
        if prior is not None and special.fdtrc(each.freedom, prior.freedom, each.spread**2 / prior.variance) < LOUDER:
            prior = None
        lent.append(each if prior is None else replace(each, prior=prior))
    return lent


def _find_prior(estimates: Sequence[Estimate], rounds: int) -> Prior | None:
    """Return what these estimates said together of the variance of a round when they had at most this many rounds."""
    known = [cut for each in estimates if (cut := each.cut(rounds)).spread > 0]
    if len(known) < FEWEST_COMPARISONS:
        return None
    common = find_common_share([np.array(each.pulled_in) for each in known])
    return fit_prior([(each.spread**2, each.freedom) for each in known], common)


def find_share_of_error(estimate: Estimate) -> float:
    """Return how much of an error is given out for the verdict that an estimate differs."""
    return OF_SHARED if estimate.prior else 1.0


def fit_prior(variances: Sequence[tuple[float, float]], common: float = 0.0) -> Prior:
    """Return what these variances, each with its degrees of freedom, have in common, by the moments of their logs.

    Comparisons that stray together, by this `common` share of their variance, are also alike in how much they seem to
    scatter. They say less of how much they do.
    """
    count, halves = len(variances), np.array([freedom / 2 for _, freedom in variances])
    logs = np.log([value for value, _ in variances]) - special.digamma(halves) + np.log(halves)
    apart, by_chance = float(logs.var(ddof=1)), float(special.zeta(2, halves).mean())
    error = np.sqrt(2 * apart**2 / (count - 1) + 6 * float(special.zeta(4, halves).mean()) / count)
    truly_apart = max(apart - (1 - common) * by_chance + CAUTION * error, 0.0)
    # The middle of these variances is not known exactly either.
    uncertain = truly_apart * (1 + 1 / count) + by_chance * (common + (1 - common) / count)
    freedom = min(2 * _invert_trigamma(max(uncertain, LEAST_APART)), MOST_FREEDOM)
    log = float(logs.mean()) + float(special.digamma(freedom / 2)) - float(np.log(freedom / 2))
    return Prior(float(np.exp(log)), freedom)


def _invert_trigamma(value: float) -> float:
    """Return the number whose trigamma this is, by Newton's method on the inverse."""
    number = 0.5 + 1 / value
    for _ in range(20):
        trigamma = float(special.zeta(2, number))
        number += trigamma * (1 - trigamma / value) / (-2 * float(special.zeta(3, number)))
    return number
