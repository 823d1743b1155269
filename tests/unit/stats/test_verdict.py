"""The four verdicts at their edges, and how often an A/A comparison is called a difference."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.paired import Estimate, estimate
from orchestrator.stats.verdict import judge, seed_percent
from tests.support.builders import estimate_of

ALPHA, MARGIN, ROUNDS = 0.0125, 0.05, 10
BOUND = math.log1p(MARGIN)
HAIR = 1e-6


def estimated(theta: float, half_width: float, alpha: float = ALPHA) -> Estimate:
    """An estimate whose interval at `alpha` is theta +- half_width."""
    return estimate_of(theta, half_width / estimate_of(0.0, 1.0, ROUNDS).half_width(alpha), ROUNDS)


def verdict(theta: float, half_width: float, alpha: float = ALPHA) -> str:
    return judge(estimated(theta, half_width, alpha), MARGIN, ALPHA)[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_same_is_the_wider_interval_inside_the_margin_on_both_sides(sign: int):
    """TOST: the interval at twice alpha; its edge must stay within, not merely reach the margin."""
    assert verdict(sign * 0.01, BOUND - 0.01 - HAIR, 2 * ALPHA) == "same"
    assert verdict(sign * 0.01, BOUND - 0.01 + HAIR, 2 * ALPHA) == "inconclusive"


@pytest.mark.parametrize(("sign", "word"), [(1, "slower"), (-1, "faster")])
def test_a_difference_excludes_one_and_lies_beyond_the_margin(sign: int, word: str):
    theta = BOUND + 0.02
    assert verdict(sign * theta, theta - HAIR) == word
    assert verdict(sign * theta, theta + HAIR) == "inconclusive"
    assert verdict(sign * (BOUND + HAIR), BOUND / 2) == word
    assert verdict(sign * (BOUND - HAIR), BOUND / 2) == "inconclusive"


def test_the_margin_is_a_ratio_up_and_the_same_ratio_down():
    """1.05 and 1 / 1.05, not 1.05 and 0.95."""
    assert verdict(math.log(1.0501), HAIR) == "slower"
    assert verdict(math.log(1 / 1.0501), HAIR) == "faster"
    assert verdict(math.log(0.9524), HAIR) == "same"


def test_a_clear_difference_inside_the_margin_is_the_same_for_the_purpose():
    assert verdict(0.02, 0.001) == "same"


def test_without_any_spread_the_estimate_decides():
    assert judge(estimate_of(0.0, 0.0, ROUNDS), MARGIN, ALPHA) == ("same", "")
    assert judge(estimate_of(1.0, 0.0, ROUNDS), MARGIN, ALPHA) == ("slower", "")


def test_a_difference_that_may_be_smaller_than_the_margin_is_said_to_be_there():
    found = judge(estimated(BOUND - 0.005, BOUND - 0.01), MARGIN, ALPHA)
    assert found == ("inconclusive", "a difference is there, but not clearly beyond the margin of 5%")


def test_noise_is_said_to_be_noise_with_the_rounds_that_it_would_take():
    noisy = estimated(0.01, 0.2)
    word, reason = judge(noisy, MARGIN, ALPHA)
    assert word == "inconclusive"
    visible, needed = noisy.smallest_visible(ALPHA), noisy.rounds_for(BOUND, ALPHA)
    assert reason == f"too noisy: 10 rounds show slowdowns from {visible:.0%} on; about {needed} would show 5%"


def test_an_a_a_comparison_is_called_a_difference_no_more_often_than_alpha_over_all_its_looks():
    """Fixed seed, a margin too small to shield it; the looks and the split of alpha are those of a run."""
    draw = np.random.default_rng(20260102)
    looks, alpha, trials = (6, 10, 15, 20), 0.05, 2000
    wrong = 0
    for row in draw.normal(0, 0.03, (trials, looks[-1])):
        for rounds in looks:
            found = estimate(dict.fromkeys(range(rounds), 0.0), dict(enumerate(row[:rounds].tolist())))
            assert found is not None
            if abs(found.theta) > found.half_width(alpha / len(looks)):
                assert judge(found, 1e-9, alpha / len(looks))[0] in ("slower", "faster")
                wrong += 1
                break
    assert wrong <= stats.binom.ppf(0.999, trials, alpha)
    assert wrong > 0, "an error rate of nothing at all is a test that cannot fail"


@pytest.mark.parametrize(
    ("ratio", "percent"), [(3.6, -260), (1 / 3.6, 260), (1.0, 0), (2.0, -100), (0.5, 100), (1.05, -5), (1 / 1.05, 5)]
)
def test_the_seeds_percentage_is_minus_where_the_candidate_is_slower(ratio: float, percent: float):
    """3.6x slower reads -260 %: the longer over the shorter, less one."""
    assert seed_percent(math.log(ratio)) == pytest.approx(percent)
