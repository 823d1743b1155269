"""The scatter of rounds, estimated from all comparisons of one metric in one run.

Four rounds say little about their own scatter, so a difference has to be many standard errors from zero. But the
comparisons of a run scatter more or less alike, and their variances show how much they differ. This is the moderated t
statistic of Smyth (2004).
"""

from collections.abc import Sequence

import numpy as np
from scipy import special

from orchestrator.stats.limits import FEWEST_COMPARISONS
from orchestrator.stats.paired import Estimate, Prior
from orchestrator.stats.resemblance import find_common_share

# Other comparisons count at most as much as eight more rounds, because few rounds may hide how variances differ.
MOST_FREEDOM = 8.0
# Variances are assumed to differ by this many standard errors more than they seem to.
CAUTION = 0.25
# This share of the error is used if variances are shared. The rest allows for comparisons whose scatter differs in ways
# that the theory does not cover, and for those that deviate together.
SHARED_ERROR_SHARE = 0.92
# An estimate gets no prior if chance explains its scatter with less than this probability.
LEAST_SCATTER_P = 0.02
# A smaller difference of log variances counts as none.
LEAST_APART = 1e-6


def share_variance(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return these estimates, each with a prior from all of them; if there are too few, return them unchanged.

    An estimate that scatters far more than the others gets no prior, because that would make it too certain. Other
    estimates may have more rounds by now. Those rounds are left out, so that each estimate is judged as it was at its
    last look, whatever follows.
    """
    priors = {rounds: _find_prior(estimates, rounds) for rounds in {each.rounds for each in estimates}}
    with_priors = []
    for each in estimates:
        prior = priors[each.rounds]
        if (
            prior is not None
            and special.fdtrc(each.freedom, prior.freedom, each.spread**2 / prior.variance) < LEAST_SCATTER_P
        ):
            prior = None
        with_priors.append(each if prior is None else each.adjust(prior=prior, widened=each.widened))
    return with_priors


def _find_prior(estimates: Sequence[Estimate], rounds: int) -> Prior | None:
    """Return the prior that these estimates gave when they had at most this many rounds; None if there are too few."""
    known = [cut for each in estimates if (cut := each.cut(rounds)).spread > 0]
    if len(known) < FEWEST_COMPARISONS:
        return None
    common = find_common_share([each.winsorized for each in known])
    return fit_prior([(each.spread**2, each.freedom) for each in known], common)


def find_share_of_error(estimate: Estimate) -> float:
    """Return the share of an error that is used for the verdict that an estimate differs."""
    return SHARED_ERROR_SHARE if estimate.prior else 1.0


def fit_prior(variances: Sequence[tuple[float, float]], common: float = 0.0) -> Prior:
    """Fit a prior to these variances, each with its degrees of freedom, by the moments of their logs.

    Comparisons that deviate together, by this `common` share of their variance, also seem to scatter alike, so they say
    less about their true scatter.
    """
    count, halves = len(variances), np.array([freedom / 2 for _, freedom in variances])
    logs = np.log([value for value, _ in variances]) - special.digamma(halves) + np.log(halves)
    apart, by_chance = float(logs.var(ddof=1)), float(special.zeta(2, halves).mean())
    error = np.sqrt(2 * apart**2 / (count - 1) + 6 * float(special.zeta(4, halves).mean()) / count)
    truly_apart = max(apart - (1 - common) * by_chance + CAUTION * error, 0.0)
    # The mean of these log variances is not known exactly either.
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
