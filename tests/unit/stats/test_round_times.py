"""The times of an arm in a round, and the ratio of two arms, which is taken turn by turn."""

import math
import random
from collections.abc import Iterable
from statistics import fmean, median, stdev

import numpy as np
import pytest

from orchestrator.stats.round_times import (
    EvenRounds,
    RoundTimes,
    Visit,
    compare_rounds,
    group_visits,
    middle_mean,
)


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ((3.0,), 3.0),
        ((1.0, 3.0), 2.0),
        # One in four is left out at each end,
        ((100.0, 2.0, 4.0, -100.0), 3.0),
        # and of three, three quarters of one.
        ((1.0, 6.0, 3.0), (0.25 * 1 + 3 + 0.25 * 6) / 1.5),
    ],
)
def test_the_middle_mean_is_that_of_the_middle_half(values: tuple[float, ...], mean: float):
    assert middle_mean(values) == pytest.approx(mean)


@pytest.mark.parametrize("count", range(1, 25))
def test_a_factor_of_the_times_is_one_of_their_mean_and_order_does_not_matter(count: int):
    draw = random.Random(count)
    values = [draw.gauss(0, 2) for _ in range(count)]
    assert middle_mean([value + 0.7 for value in values]) == pytest.approx(middle_mean(values) + 0.7)
    assert middle_mean(values[::-1]) == middle_mean(values)


@pytest.mark.parametrize("counts", [(1, 1), (8, 8), (13, 13), (3, 20)])
def test_the_ratio_of_two_arms_is_the_inverse_of_their_swap(counts: tuple[int, int]):
    draw = random.Random(5)
    one, other = (tuple(draw.gauss(0, 2) for _ in range(count)) for count in counts)
    ours, theirs = RoundTimes((one,)), RoundTimes((other,))
    assert ours - theirs == pytest.approx(-(theirs - ours))
    assert RoundTimes((tuple(value + 0.3 for value in one),)) - ours == pytest.approx(0.3)


def test_moments_that_both_arms_share_cancel_out():
    """Every other turn is slow, and the arms' own noise is small: levels would be off by the luck of the middle."""
    moments = [0.0, 0.5] * 5
    ours = RoundTimes((tuple(moment + 0.1 for moment in moments),))
    assert ours - RoundTimes((tuple(moments),)) == pytest.approx(0.1)


def test_arms_with_other_numbers_of_bursts_or_visits_are_compared_as_a_whole():
    short, long = RoundTimes(((1.0, 1.0, 1.0),)), RoundTimes(((0.5,) * 8,))
    assert short - long == pytest.approx(0.5)
    assert RoundTimes((*short.visits, *short.visits)) - long == pytest.approx(0.5)


def test_visits_of_a_round_count_alike():
    ours, theirs = RoundTimes(((1.0, 1.0), (2.0, 2.0))), RoundTimes(((0.0, 0.0), (0.0, 0.0)))
    assert ours - theirs == pytest.approx(1.5)
    assert ours.level == pytest.approx(1.5)


def test_only_visits_in_which_both_arms_were_open_are_compared():
    """The baseline of a divided group is in all of its sittings, and the machine is slower in each."""
    baseline = RoundTimes(((1.0,), (2.0,), (3.0,)), sittings=(1, 6, 11))
    for place, sitting in enumerate((1, 6, 11)):
        candidate = RoundTimes(((1.5 + place,),), sittings=(sitting,))
        assert candidate - baseline == pytest.approx(0.5)
        assert baseline - candidate == pytest.approx(-0.5)
    both = RoundTimes(((2.25,), (3.75,)), sittings=(6, 11))
    assert both - baseline == pytest.approx(0.5)
    assert RoundTimes(((1.5,), (2.5,)), sittings=(1, 6)) - both == pytest.approx(0.25), "they share one sitting"


def test_a_visit_in_which_an_arm_died_is_left_out_of_its_ratios():
    whole = RoundTimes(((1.0,), (5.0,), (1.0,)), sittings=(1, 21, 41))
    assert RoundTimes(((1.5,), (1.5,)), sittings=(1, 41)) - whole == pytest.approx(0.5)


def test_a_missing_worker_moves_no_visit_to_another_sitting():
    """Arms after it have the same number and a later position."""
    one = RoundTimes(((1.0,), (2.0,)), sittings=(1, 20))
    assert RoundTimes(((1.5,), (2.5,)), sittings=(0, 18)) - one == pytest.approx(0.5)


def simulate(draw: random.Random, outliers: float) -> tuple[list[float], list[float]]:
    """Return the bursts of two equal arms on a machine that has two speeds and changes between them now and then."""
    slow, arms = draw.random() < 0.5, ([], [])
    for _ in range(16):
        for arm in arms:
            slow ^= draw.random() < 0.15
            spike = draw.uniform(0.5, 2.0) if draw.random() < outliers else 0.0
            arm.append(0.3 * slow + spike + draw.gauss(0, 0.03))
    return arms


@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_on_a_machine_of_two_speeds_it_scatters_less_than_medians_and_not_more_than_means(outliers: float):
    draw = random.Random(7)
    rounds = [simulate(draw, outliers) for _ in range(2000)]
    ours = stdev(RoundTimes((tuple(one),)) - RoundTimes((tuple(other),)) for one, other in rounds)
    medians = stdev(median(one) - median(other) for one, other in rounds)
    means = stdev(fmean(one) - fmean(other) for one, other in rounds)
    assert ours < 0.75 * medians
    assert ours < 1.05 * means
    assert math.isclose(fmean(RoundTimes((tuple(a),)) - RoundTimes((tuple(b),)) for a, b in rounds), 0, abs_tol=0.01)


@pytest.mark.parametrize("bursts", [1, 2, 7])
def test_rounds_of_one_visit_are_compared_at_once_as_they_are_one_by_one(bursts: int):
    draw = np.random.default_rng(bursts)

    def visits(numbers: Iterable[int]) -> list[Visit]:
        return [(number, tuple(draw.normal(size=bursts).tolist()), 10 * number) for number in numbers]

    ours, theirs = visits((1, 2, 3, 5)), visits((2, 3, 4, 5))
    baseline, candidate = group_visits(ours), group_visits(theirs)
    assert isinstance(baseline, EvenRounds)
    assert isinstance(candidate, EvenRounds)
    one_by_one = compare_rounds(dict(baseline), dict(candidate))
    assert compare_rounds(baseline, candidate) == pytest.approx(one_by_one)
    assert list(one_by_one) == [2, 3, 5]
    assert baseline[2] == RoundTimes((ours[1][1],), (20,))
    assert 4 not in baseline
    assert baseline.get(4) is None


def test_a_round_of_several_visits_keeps_all_of_them():
    grouped = group_visits([(1, (1.0,), 5), (2, (2.0,), 6), (1, (3.0,), 7)])
    assert grouped == {1: RoundTimes(((1.0,), (3.0,)), (5, 7)), 2: RoundTimes(((2.0,),), (6,))}
    assert group_visits([]) == {}
