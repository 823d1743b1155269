"""Estimates and intervals agree with scipy's own paired t, and keep what they promise in simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.paired import Estimate, estimate
from tests.support.builders import estimate_of

ALPHA = 0.0125


def sample(rounds: int, seed: int = 1) -> tuple[dict[int, float], dict[int, float]]:
    """Log times by round, whose own level drifts far more than the two arms differ."""
    draw = np.random.default_rng(seed)
    drift = draw.normal(0, 0.5, rounds)
    first, second = (drift + draw.normal(level, 0.03, rounds) for level in (0.0, 0.1))
    return dict(enumerate(first.tolist(), 1)), dict(enumerate(second.tolist(), 1))


def estimated(baseline: dict[int, float], candidate: dict[int, float]) -> Estimate:
    found = estimate(baseline, candidate)
    assert found is not None
    return found


@pytest.mark.parametrize("rounds", [2, 6, 10, 20])
@pytest.mark.parametrize("alpha", [0.05, ALPHA])
def test_the_interval_is_that_of_scipys_paired_t_test(rounds: int, alpha: float):
    baseline, candidate = sample(rounds)
    found = estimated(baseline, candidate)
    oracle = stats.ttest_rel(list(candidate.values()), list(baseline.values())).confidence_interval(1 - alpha)
    assert found.theta - found.half_width(alpha) == pytest.approx(oracle.low)
    assert found.theta + found.half_width(alpha) == pytest.approx(oracle.high)


def test_arms_are_paired_by_the_number_of_the_round_and_not_by_position():
    """A round that only one of them finished drops out, whatever it measured."""
    whole = estimated({1: 0.0, 2: 1.0, 3: 2.0}, {1: 0.1, 2: 1.1, 3: 2.1})
    holed = estimated({1: 0.0, 3: 2.0, 2: 1.0, 9: 50.0}, {3: 2.1, 1: 0.1, 2: 1.1, 8: -50.0})
    assert whole.rounds == holed.rounds == 3
    assert holed.theta == pytest.approx(whole.theta) == pytest.approx(0.1)
    assert holed.spread == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("baseline", "candidate"), [({}, {}), ({1: 0.0}, {1: 0.1}), ({1: 0.0, 2: 0.0}, {2: 0.1, 3: 0.1})]
)
def test_there_is_no_estimate_from_less_than_two_common_rounds(baseline: dict, candidate: dict):
    assert estimate(baseline, candidate) is None


def test_swapping_the_arms_turns_the_sign_and_nothing_else():
    baseline, candidate = sample(10)
    there, back = estimated(baseline, candidate), estimated(candidate, baseline)
    assert back.theta == pytest.approx(-there.theta)
    assert back.half_width(ALPHA) == pytest.approx(there.half_width(ALPHA))


@pytest.mark.parametrize("rounds", [6, 20])
def test_the_interval_covers_the_truth_as_often_as_it_says(rounds: int):
    """Fixed seed; the bounds leave a right implementation one failure in a thousand seeds."""
    draw = np.random.default_rng(20260102)
    truth, trials, alpha = 0.07, 4000, 0.05
    differences = draw.normal(truth, 0.05, (trials, rounds))
    covered = 0
    for row in differences:
        found = estimated(dict.fromkeys(range(rounds), 0.0), dict(enumerate(row.tolist())))
        covered += abs(found.theta - truth) <= found.half_width(alpha)
    fewest, most = stats.binom.interval(0.999, trials, 1 - alpha)
    assert fewest <= covered <= most


def test_the_smallest_visible_effect_is_seen_nine_times_in_ten():
    """The formula's own promise, by simulation; the plug-in of two t quantiles is a little conservative."""
    draw = np.random.default_rng(20260102)
    rounds, trials, spread = 10, 4000, 0.03
    effect = math.log1p(estimate_of(0.0, spread, rounds).smallest_visible(ALPHA))
    seen = 0
    for row in draw.normal(effect, spread, (trials, rounds)):
        found = estimated(dict.fromkeys(range(rounds), 0.0), dict(enumerate(row.tolist())))
        seen += found.theta - found.half_width(ALPHA) > 0
    assert 0.87 <= seen / trials <= 0.95


@pytest.mark.parametrize("rounds", [2, 6, 10, 20])
def test_what_these_rounds_can_see_needs_these_rounds_and_no_more(rounds: int):
    found = estimate_of(0.0, 0.05, rounds)
    visible = math.log1p(found.smallest_visible(ALPHA))
    assert found.rounds_for(visible * (1 + 1e-9), ALPHA) == rounds


def test_the_rounds_that_it_asks_for_would_show_the_effect():
    found, effect = estimate_of(0.0, 0.05, 6), math.log1p(0.03)
    needed = found.rounds_for(effect, ALPHA)
    assert needed > found.rounds
    assert math.log1p(estimate_of(0.0, 0.05, needed).smallest_visible(ALPHA)) <= effect
    # It counts in steps of a tenth: two steps fewer are too few.
    assert math.log1p(estimate_of(0.0, 0.05, int(needed / 1.21)).smallest_visible(ALPHA)) > effect


def test_more_rounds_and_less_noise_show_smaller_effects():
    visible = [estimate_of(0.0, 0.05, rounds).smallest_visible(ALPHA) for rounds in (3, 6, 10, 20)]
    assert visible == sorted(visible, reverse=True)
    assert estimate_of(0.0, 0.01, 6).smallest_visible(ALPHA) < estimate_of(0.0, 0.05, 6).smallest_visible(ALPHA)


def test_it_gives_up_counting_where_no_number_of_rounds_would_do():
    assert estimate_of(0.0, 100.0, 6).rounds_for(1e-9, ALPHA) >= 10_000
