"""The size of a difference that was called, against the same by other ways of computing it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.called import _count_calls, _find_farthest, _find_shifts, estimate_called
from orchestrator.stats.looks import LookLevels
from orchestrator.stats.paired import Estimate, Prior

FIRST: LookLevels = ((4, 0.002),)
SECOND: LookLevels = ((4, 0.002), (6, 0.0025))
# 14 and 480 standard errors from none; the first look asks for 10.
BARELY, BY_FAR = (0.11, 0.09, 0.115, 0.085), (1.100, 1.099, 1.106, 1.095)


@pytest.mark.parametrize(("freedom", "level"), [(3, 0.002), (5, 1e-5), (7.5, 0.01), (19, 0.018)])
def test_calls_at_a_first_look_are_counted_by_the_noncentral_t_distribution(freedom: float, level: float):
    limit = float(stats.t.isf(level / 2, freedom))
    means, logs = _count_calls(((int(freedom) + 1, level),), freedom)
    assert np.exp(logs) == pytest.approx(stats.nct.sf(limit, freedom, np.maximum(means, 1e-12)), rel=0.02)


@pytest.mark.parametrize("mean", [1.0, 3.0, 6.0])
def test_calls_at_a_later_look_are_those_that_none_before_has_made(mean: float):
    levels: LookLevels = ((4, 0.002), (6, 0.003), (10, 0.007))
    rounds = np.random.default_rng(2).normal(mean / math.sqrt(10), 1.0, (200_000, 10))
    new = np.full(len(rounds), True)
    for look, level in levels:
        t = rounds[:, :look].mean(1) / rounds[:, :look].std(1, ddof=1) * math.sqrt(look)
        limit = stats.t.isf(level / 2, look - 1)
        called = new & (t > limit)
        new &= np.abs(t) <= limit
    counted = math.exp(np.interp(mean, *_count_calls(levels, 9)))
    assert counted == pytest.approx(called.mean(), rel=0.05)


def test_the_estimate_is_the_median_of_the_conditional_likelihood():
    """The same by brute force: many means and scatters, each weighed by what it says of these rounds."""
    found, level = Estimate((0.11, 0.05, 0.16, 0.07), prior=Prior(0.05**2, 4.0)), 0.05
    draw = np.random.default_rng(5)
    errors = found.standard_error * np.sqrt(found.freedom / draw.chisquare(found.freedom, 100_000))
    truths = found.theta + errors * draw.normal(size=errors.size)
    truths, errors = truths[truths > 0], errors[truths > 0]
    weights = 1 / stats.nct.sf(float(stats.t.isf(level / 2, found.freedom)), found.freedom, truths / errors)
    order = np.argsort(truths)
    near, middle = np.interp((0.025, 0.5), np.cumsum(weights[order]) / weights.sum(), truths[order])
    theta, low, high = estimate_called(found, ((4, level),))
    width = found.half_width(level)
    assert theta == pytest.approx(middle, rel=0.02)
    assert low == pytest.approx(min(near, found.theta - width), abs=0.02 * found.theta)
    assert high == pytest.approx(found.theta + width)


def test_a_difference_of_many_standard_errors_stays_as_it_is():
    found = Estimate(BY_FAR)
    width = found.half_width(FIRST[0][1])
    plain = found.theta, found.theta - width, found.theta + width
    assert estimate_called(found, FIRST) == pytest.approx(plain, rel=0.005)


def test_one_that_was_barely_called_reaches_nearer_to_none():
    found = Estimate(BARELY)
    width = found.half_width(FIRST[0][1])
    theta, low, high = estimate_called(found, FIRST)
    assert 0 < low < (found.theta - width) / 2
    assert low < theta < found.theta
    assert high == pytest.approx(found.theta + width)


def test_one_that_was_barely_called_keeps_less_of_its_mean_where_others_know_its_scatter():
    """Alone, it may have been called because its rounds scatter little by luck; then its mean needs none."""
    alone = Estimate(BARELY)
    known = replace(alone, prior=Prior(alone.spread**2, 8.0))
    kept = []
    for found in (alone, known):
        barely = 1.01 * found.half_width(FIRST[0][1]) - found.theta
        found = replace(found, differences=tuple(each + barely for each in found.differences))
        kept.append(estimate_called(found, FIRST)[0] / found.theta)
    assert kept[1] < 0.8 * kept[0]


def test_one_that_an_earlier_look_has_called_is_no_luck_of_a_later_one():
    """Another comparison kept its case open: then what the earlier look would have called does not count."""
    late, early = (0.03, 0.13, 0.10, 0.10, 0.10, 0.10), (0.10, 0.101, 0.099, 0.10, 0.04, 0.16)
    assert Estimate(late[:4]).p > SECOND[0][1] > Estimate(early[:4]).p
    assert estimate_called(Estimate(early), SECOND) == estimate_called(Estimate(early), SECOND[1:])
    assert estimate_called(Estimate(late), SECOND) != estimate_called(Estimate(late), SECOND[1:])


@pytest.mark.parametrize("rounds", [BARELY, BY_FAR])
def test_what_is_faster_mirrors_what_is_slower(rounds: tuple[float, ...]):
    theta, low, high = estimate_called(Estimate(rounds), FIRST)
    assert estimate_called(Estimate(tuple(-each for each in rounds)), FIRST) == pytest.approx((-theta, -high, -low))


@pytest.mark.parametrize("beyond", [1.0000001, 1.01, 2.0, 1e6, 1e12])
@pytest.mark.parametrize("levels", [FIRST, SECOND, ((4, 1e-9), (6, 1e-9), (20, 0.02)), ((30, 0.02),)])
@pytest.mark.parametrize("prior", [None, Prior(0.001**2, 4.0), Prior(3.0**2, 4.0)])
def test_the_interval_holds_the_estimate_and_never_none(beyond: float, levels: LookLevels, prior: Prior | None):
    rounds, level = levels[-1]
    spread = Estimate(tuple(np.linspace(-0.05, 0.05, rounds).tolist()), prior=prior)
    shift = beyond * spread.half_width(level)
    found = replace(spread, differences=tuple(each + shift for each in spread.differences))
    theta, low, high = estimate_called(found, levels)
    assert 0 < low < theta < high < math.inf


def test_rounds_that_are_all_alike_are_their_own_interval():
    assert estimate_called(Estimate((0.5, 0.5, 0.5, 0.5)), FIRST) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("levels", [FIRST, SECOND, ((4, 0.0005), (10, 0.003), (20, 0.01))])
@pytest.mark.parametrize("freedom", [3.0, 15.0, 23.0])
def test_far_differences_are_weighed_as_at_the_distance_where_all_means_are_called(levels: LookLevels, freedom: float):
    """There, neither the distance nor the looks before the last one changes how far off the estimate is."""
    farthest = _find_farthest(levels[-1][1], freedom)
    expected = _find_shifts(levels, freedom, farthest)
    for times in (1.001, 1.3, 10.0):
        assert _find_shifts(levels, freedom, farthest * times) == pytest.approx(expected, abs=1e-9 * farthest)
    assert _find_shifts(levels[-1:], freedom, farthest) == pytest.approx(expected, abs=1e-9)
