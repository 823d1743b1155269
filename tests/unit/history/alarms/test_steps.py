"""Which series are suspects and which steps are told; the limits are calibrated by `make bench ARGS=alarms`."""

import math
from datetime import timedelta

import numpy as np
import pytest
from scipy import stats

from orchestrator.history.alarms import steps
from orchestrator.history.alarms.noise_model import nights_of
from orchestrator.history.alarms.steps import (
    MIN_NIGHTS,
    changes,
    find_unsettled,
    find_wander,
    limit_suspects,
    suspects,
)
from orchestrator.history.model import Segment, Value
from tests.support.segments import BEGIN, NOISE, key, noisy, segment, stepped, value


def test_a_step_is_told_with_its_nights_and_an_interval_that_holds_it() -> None:
    (change,) = changes(segment(stepped(30, 10, math.log(1.10))))
    assert change.first == BEGIN + timedelta(30)
    assert change.last == BEGIN + timedelta(29)
    assert change.ci_low < 1.10 < change.ci_high
    assert change.ratio == pytest.approx(change.after / change.before)
    assert change.p < 1e-6
    assert change.direction == "slower"


@pytest.mark.parametrize("seed", [0, 5, 10, 15, 20, 25])
def test_a_step_that_seemed_too_small_at_first_is_news_when_its_size_is_known(seed: int) -> None:
    # The level moved by 1 % before, as a reboot does, so the step seems smaller than it is as long as it is young.
    levels = [0.0] * 60 + [-0.011] * 60 + [0.0125] * 30
    effects = [level + stray for level, stray in zip(levels, noisy(150, seed, 0.006), strict=True)]
    known = [segment(effects[: night + 1], sure=[night], noise=0.006) for night in range(118, 150)]
    first = next((night for night, so_far in enumerate(known) if changes(so_far)), None)
    news = [night for night, so_far in enumerate(known) if steps.find_new_step(so_far)]
    assert news[:1] == ([] if first is None else [first])


def test_a_step_that_is_known_to_be_too_small_is_not_confirmed_for_ever() -> None:
    levels = [0.0] * 60 + [0.017] * 60
    effects = [level + stray for level, stray in zip(levels, noisy(120, 3, 0.006), strict=True)]
    asked = [night for night in range(60, 120) if suspects({key("a"): segment(effects[: night + 1], noise=0.006)})]
    assert len(asked) < 15


def test_what_a_week_of_confirmations_did_not_settle_is_left_to_the_screens() -> None:
    effects = [*noisy(40, 4), *(0.022 + stray for stray in noisy(8, 5))]
    week = range(len(effects) - 1 - steps.MOST_CONFIRMED, len(effects) - 1)
    assert suspects({key("a"): segment(effects, sure=[])}) == (key("a"),)
    assert suspects({key("a"): segment(effects, sure=week)}) == ()
    # A large change of tonight is confirmed nevertheless.
    assert suspects({key("a"): segment([*effects[:-1], 0.2], sure=week)}) == (key("a"),)


def test_what_became_faster_is_told_too() -> None:
    (change,) = changes(segment(stepped(30, 10, math.log(0.9))))
    assert change.direction == "faster"


def test_two_steps_are_two_changes_the_oldest_first() -> None:
    effects = [*stepped(20, 15, 0.1), *(0.2 + one for one in noisy(15, seed=5))]
    first, second = changes(segment(effects))
    assert [first.first, second.first] == [BEGIN + timedelta(20), BEGIN + timedelta(35)]


def test_a_step_that_was_taken_back_stays_in_the_history() -> None:
    effects = [*stepped(30, 5, 0.1), *noisy(40, seed=6)]
    there, back = changes(segment(effects))
    assert there.direction == "slower"
    assert back.direction == "faster"


@pytest.mark.parametrize("count", range(MIN_NIGHTS + 1))
def test_a_series_of_few_nights_tells_nothing_and_is_no_suspect(count: int) -> None:
    young = segment([1.0 * night for night in range(count)], sure=range(count))
    assert changes(young) == ()
    assert suspects({key("a"): young}) == ()


@pytest.mark.parametrize("count", range(1, 12))
def test_neither_a_series_without_noise_nor_one_without_a_control_arm_fails(count: int) -> None:
    flat = tuple(Value(night=BEGIN + timedelta(night), effect=0.0, error=0.0, rounds=2) for night in range(count))
    for control in ((), flat, flat[:1]):
        still = Segment(values=flat, control=control)
        assert changes(still) == ()
        assert suspects({key("a"): still}) == ()


def test_a_step_of_one_night_is_told_only_where_it_was_confirmed() -> None:
    effects = stepped(30, 1, math.log(1.10))
    assert changes(segment(effects)) == ()
    (change,) = changes(segment(effects, sure=[30]))
    assert change.first == BEGIN + timedelta(30)


def test_a_small_step_is_no_change_however_sure_it_is() -> None:
    assert changes(segment(stepped(60, 60, math.log(1.01)), noise=0.001)) == ()


def test_one_freak_night_is_no_change_and_hides_none() -> None:
    calm = noisy(40)
    calm[20] += 1.0
    assert changes(segment(calm)) == ()
    slower = stepped(40, 4, math.log(1.05))
    slower[20] += 1.0
    (change,) = changes(segment(slower))
    assert change.first == BEGIN + timedelta(40)
    assert change.before == pytest.approx(1, abs=0.01)


def test_a_version_that_strays_more_from_night_to_night_than_its_rounds_say_raises_nothing() -> None:
    effects = noisy(60, noise=5 * NOISE)
    assert changes(segment(effects, sure=range(40, 60))) == ()


def test_the_t_statistic_is_that_of_a_weighted_difference_of_means() -> None:
    nights = nights_of(segment(stepped(10, 6, 0.05), sure=[3, 12]))
    (t, _) = steps._splits(nights, 2, 16, 5)
    before, after = slice(2, 9), slice(9, 16)
    means = [np.average(nights.effects[part], weights=nights.weights[part]) for part in (before, after)]
    error = math.sqrt(sum(1 / nights.weights[part].sum() for part in (before, after)))
    assert t[-1, -7] == pytest.approx((means[1] - means[0]) / error)
    assert steps._last_splits(nights, 2, 16, 5)[0] == pytest.approx(t[-1, -9:])
    assert not t[-1, :-9].any()


def test_suspects_come_the_most_suspicious_first_and_no_control_arm_is_one() -> None:
    calm = {key(f"calm{seed}"): segment(noisy(30, seed), seed + 50) for seed in range(20)}
    slower = {key("five"): segment(stepped(30, 1, 0.05)), key("ten"): segment(stepped(30, 1, 0.10))}
    control = {key("ten", "2.13+control"): segment(stepped(30, 1, 0.5))}
    found = suspects({**calm, **slower, **control})
    assert found[:2] == (key("ten"), key("five"))
    assert not any(one.is_control for one in found)
    assert len(found) <= 8


def test_a_step_that_tonight_alone_would_not_show_is_suspected_in_time() -> None:
    effects = stepped(40, 4, math.log(1.03), seed=4)
    assert suspects({key("a"): segment(effects, noise=0.02)}) == (key("a"),)


def test_no_more_than_a_third_is_affordable_and_a_few_always_are() -> None:
    many = [key(f"case{number}") for number in range(40)]
    assert limit_suspects(many, 60) == many[:20]
    assert limit_suspects(many, 3) == many[:4]
    assert limit_suspects(many[:2], 60) == many[:2]


def test_what_a_confirmation_neither_told_nor_cleared_is_unsettled() -> None:
    def confirmed(tonight: float) -> Segment:
        return segment([*noisy(30, 6, 0.02), tonight], 46, sure=[30], noise=0.02)

    cells = {key("told"): confirmed(0.10), key("cleared"): confirmed(0.0), key("between"): confirmed(0.035)}
    assert changes(cells[key("told")])
    assert find_unsettled(cells, find_wander(cells)) == (key("between"),)


def test_whatever_tonight_would_tell_is_a_suspect() -> None:
    for seed in range(40):
        size = math.log(1.02 + 0.01 * seed)
        slower = segment(stepped(30, 3, size, seed), seed, noise=0.01 if seed < 20 else 0.05)
        before = Segment(values=slower.values[:-1], control=slower.control[:-1])
        if changes(slower) and not changes(before):
            assert suspects({key("a"): slower}) == (key("a"),)


def test_false_alarms_are_rare() -> None:
    """Four months a case; the bench says how rare exactly, night by night and on recorded noise."""
    cases, nights, noise = 300, 120, 0.02
    alarmed = 0
    for seed in range(cases):
        version, reference, again = noise * np.random.default_rng(seed).normal(size=(3, nights))
        calm = Segment(
            values=tuple(value(night, one, noise=noise * 2**0.5) for night, one in enumerate(version - reference)),
            control=tuple(value(night, one, noise=noise * 2**0.5) for night, one in enumerate(again - reference)),
        )
        alarmed += bool(changes(calm))
    # Five hundredths a month and 100 cases.
    assert stats.binomtest(alarmed, cases).proportion_ci(method="exact").low < 0.002


def wander(nights: int, seed: int) -> np.ndarray:
    """Levels of 0.7 %, of which each resembles that of the night before."""
    levels = np.random.default_rng(seed).normal(0, 0.007, nights)
    for night in range(1, nights):
        levels[night] = 0.7 * levels[night - 1] + math.sqrt(1 - 0.7**2) * levels[night]
    return levels


def count_news(series: list[list[float]], variance: float) -> int:
    """Return how many of these series have news on one of their nights, if each and the one before are confirmed."""
    return sum(
        any(
            steps.find_new_step(segment(effects[: night + 1], seed, sure=[night - 1, night], noise=0.005), variance)
            for night in range(15, 60, 3)
        )
        for seed, effects in enumerate(series)
    )


def test_levels_that_wander_from_night_to_night_are_seldom_taken_for_steps() -> None:
    series = [(wander(60, seed) + noisy(60, seed + 500, 0.005)).tolist() for seed in range(60)]
    (variance,) = find_wander(
        {key(f"case{seed}"): segment(each, noise=0.005) for seed, each in enumerate(series)}
    ).values()
    assert math.sqrt(variance / 0.7) == pytest.approx(0.007, rel=0.25)
    assert count_news(series, 0.0) >= 5
    assert count_news(series, variance) <= 1


def test_a_step_in_levels_that_wander_is_found_within_three_nights() -> None:
    series = [
        (wander(63, seed) + noisy(63, seed + 500, 0.005) + np.where(np.arange(63) >= 60, math.log(1.05), 0.0)).tolist()
        for seed in range(40)
    ]
    cells = {
        key(f"case{seed}"): segment(each, seed, sure=range(60, 63), noise=0.005) for seed, each in enumerate(series)
    }
    (variance,) = find_wander(cells).values()
    assert sum(bool(changes(cell, variance)) for cell in cells.values()) >= 30


def test_neither_independent_nights_nor_steps_are_levels_that_wander() -> None:
    calm = {key(f"case{seed}"): segment(noisy(60, seed)) for seed in range(40)}
    assert find_wander(calm) == {("host", "time"): 0.0}
    stepping = {key(f"case{seed}"): segment(stepped(35, 25, 0.05 * (seed % 5 == 0), seed)) for seed in range(40)}
    assert math.sqrt(find_wander(stepping)["host", "time"]) < 0.005
