"""What differs between two runs, against scipy's own test of samples that nothing pairs."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.paired import TRIMMED, Estimate, two_sided_p
from orchestrator.stats.welch import BetweenRunVariance, ChangeBetweenRuns


def drawn(seed: int, mean: float, spread: float, rounds: int) -> Estimate:
    return Estimate(tuple(np.random.default_rng(seed).normal(mean, spread, rounds).tolist()))


@pytest.mark.parametrize("rounds", [(6, 6), (6, 9), (9, 6), (2, 8)])
@pytest.mark.parametrize("spreads", [(0.05, 0.05), (0.02, 0.3)])
def test_interval_and_p_are_welchs(rounds: tuple[int, int], spreads: tuple[float, float]):
    earlier, later = (drawn(seed, 0.1 * seed, spreads[seed], rounds[seed]) for seed in (0, 1))
    found = ChangeBetweenRuns(earlier, later)
    expected = stats.ttest_ind(later.differences, earlier.differences, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.freedom == pytest.approx(expected.df)
    assert found.theta - found.half_width(0.05) == pytest.approx(interval.low)
    assert found.theta + found.half_width(0.05) == pytest.approx(interval.high)


@pytest.mark.parametrize("rounds", [(10, 10), (6, 20), (20, 12)])
def test_trimmed_runs_are_compared_as_by_yuen(rounds: tuple[int, int]):
    earlier, later = (drawn(seed, 0.1 * seed, 0.05, rounds[seed]) for seed in (0, 1))
    found = ChangeBetweenRuns(earlier, later)
    expected = stats.ttest_ind(later.differences, earlier.differences, equal_var=False, trim=TRIMMED)
    assert two_sided_p(found.theta / found.standard_error, found.freedom) == pytest.approx(expected.pvalue)
    assert found.freedom == pytest.approx(expected.df)
    assert found.p >= expected.pvalue * (1 - 1e-9)


def test_the_variance_between_runs_is_a_third_part():
    earlier, later = (drawn(seed, 0.1 * seed, 0.05, 8) for seed in (0, 1))
    found = ChangeBetweenRuns(earlier, later, BetweenRunVariance(0.03**2, 5))
    parts = [earlier.standard_error**2, later.standard_error**2, 2 * 0.03**2]
    assert found.standard_error == pytest.approx(math.sqrt(sum(parts)))
    below = sum(part**2 / freedom for part, freedom in zip(parts, (7, 7, 5), strict=True))
    assert found.freedom == pytest.approx(sum(parts) ** 2 / below)
    nothing = ChangeBetweenRuns(earlier, later, BetweenRunVariance(0.0, 5))
    assert nothing.half_width(0.05) == pytest.approx(ChangeBetweenRuns(earlier, later).half_width(0.05))


def test_a_ratio_that_is_the_same_in_both_runs_has_not_changed():
    one = drawn(1, 1.2, 0.1, 10)
    assert ChangeBetweenRuns(one, one).theta == 0
    assert ChangeBetweenRuns(one, one).p == pytest.approx(1.0)


def test_counts_that_never_vary_still_have_an_interval():
    """Traces are the same in every round: no spread, and no division by none."""
    found = ChangeBetweenRuns(Estimate((math.log(5),) * 6), Estimate((math.log(10),) * 6))
    assert math.exp(found.theta) == pytest.approx(2)
    assert found.half_width(0.05) < 1e-6
    assert found.p < 1e-6


def test_what_it_says_would_be_visible_is_seen_nine_times_in_ten():
    """Seen from two runs whose spread is exactly the one that is drawn."""
    draw, hits = np.random.default_rng(3), 0
    exact = Estimate(tuple(0.1 * math.sqrt(7 / 8) * (-1) ** number for number in range(8)))
    effect = math.log1p(ChangeBetweenRuns(exact, exact).smallest_visible(0.05))
    for _ in range(400):
        earlier, later = (Estimate(tuple(draw.normal(mean, 0.1, 8).tolist())) for mean in (0, effect))
        hits += ChangeBetweenRuns(earlier, later).p < 0.05
    assert 0.85 < hits / 400 < 0.95
