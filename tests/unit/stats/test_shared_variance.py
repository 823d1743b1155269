"""Comparisons share what they say of the scatter of rounds, and no more than they have in common."""

import math

import numpy as np
import pytest

from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.limits import FEWEST_COMPARISONS
from orchestrator.stats.looks import BYSTANDER_ERROR_SHARE
from orchestrator.stats.paired import Estimate, Prior
from orchestrator.stats.resemblance import find_common_share
from orchestrator.stats.shared_variance import MOST_FREEDOM, SHARED_ERROR_SHARE, fit_prior, share_variance

ROUNDS = 4


def draw(count: int, spreads: float, seed: int, *, tails: bool = False) -> list[Estimate]:
    """Comparisons of equal arms, whose scatters differ by a factor of e to this power."""
    made = np.random.default_rng(seed)
    noise = made.standard_t(3, (count, ROUNDS)) / math.sqrt(3) if tails else made.standard_normal((count, ROUNDS))
    scale = 0.2 * np.exp(spreads * made.standard_normal((count, 1)))
    return [Estimate(tuple(rounds)) for rounds in (noise * scale).tolist()]


def test_what_is_alike_is_shared_and_the_variance_is_found():
    prior = fit_prior([(each.spread**2, each.freedom) for each in draw(2000, 0.0, 1)])
    assert prior.freedom == MOST_FREEDOM
    # A little less, as for scatters that differ as much as so few degrees of freedom have it.
    assert 0.18 < math.sqrt(prior.variance) < 0.2


def test_what_differs_is_shared_less():
    alike, unlike = (fit_prior([(each.spread**2, each.freedom) for each in draw(2000, by, 1)]) for by in (0.3, 1.0))
    assert unlike.freedom < 2.5 < 5 < alike.freedom


def test_what_few_comparisons_say_counts_less_than_what_many_say():
    few, many = (fit_prior([(0.01 * (6 if place % 2 else 1), 5.0) for place in range(count)]) for count in (8, 80))
    assert few.freedom < many.freedom


def test_comparisons_that_stray_together_say_less():
    variances = [(each.spread**2, each.freedom) for each in draw(28, 0.3, 1)]
    apart, together = (fit_prior(variances, common).freedom for common in (0.0, 0.6))
    assert together < apart


def test_how_much_comparisons_stray_together_is_found():
    made = np.random.default_rng(3)
    common, own = made.normal(size=(1, 60)), made.normal(size=(40, 60))
    assert find_common_share(list(own)) < 0.02
    assert find_common_share(list(np.sqrt(0.8) * common + np.sqrt(0.2) * own)) == pytest.approx(0.64, abs=0.05)
    assert find_common_share([row[:2] for row in own]) == 0.0
    assert find_common_share([np.ones(60), own[0]]) == 0.0


def test_the_variance_is_between_its_own_and_the_common_one():
    one = Estimate((0.1, 0.1, 0.1, 0.1001))
    shared = Estimate(one.differences, prior=Prior(0.04, 4.0))
    assert one.standard_error < shared.standard_error < math.sqrt(0.04 / 4)
    assert shared.freedom == 7
    assert (shared.theta, shared.rounds) == (one.theta, one.rounds)


def test_too_few_comparisons_share_nothing():
    few = draw(FEWEST_COMPARISONS - 1, 0.0, 1)
    assert share_variance(few) == few


def test_rounds_that_do_not_differ_at_all_are_no_proof():
    still = Estimate((0.01,) * ROUNDS)
    assert still.p == 0
    assert share_variance([*draw(FEWEST_COMPARISONS, 0.0, 1), still])[-1].p > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 16])
@pytest.mark.parametrize("spreads", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("tails", [False, True])
def test_equal_arms_stay_equal_whether_comparisons_scatter_alike_or_not(count: int, spreads: float, tails: bool):
    runs, level = 1200, DIFFERENCE_ERROR * BYSTANDER_ERROR_SHARE * SHARED_ERROR_SHARE
    called = sum(
        each.p <= level for seed in range(runs) for each in share_variance(draw(count, spreads, seed, tails=tails))
    )
    assert called / (runs * count) <= 0.025
