"""What each look may spend: exact by simulation, whatever ends the rounds, and readable in both directions."""

import math

import numpy as np
import pytest
from scipy import special, stats

from orchestrator.stats.comparisons import DIFFERENCE_ERROR, MOST_CALLED_DIFFERENT
from orchestrator.stats.limits import FEWEST_SHARED
from orchestrator.stats.looks import (
    AT_A_STOP,
    BYSTANDER_ERROR_SHARE,
    ERRORS,
    FEWEST_ROUNDS,
    LookSchedule,
    Stretch,
    _find_where,
    count_fewest,
    make_bystander_schedule,
    make_schedule,
)
from orchestrator.stats.paired import Estimate
from orchestrator.stats.verdict import Levels, judge_estimate

LOOKS = (4, 6, 8, 10, 13, 16, 20)
WHOLE = make_schedule([Stretch(LOOKS)])
# Whole runs, runs that a budget ended, and runs that went on after it.
STRETCHES = {
    "to the end": [Stretch(LOOKS)],
    "stopped": [Stretch(LOOKS, 7)],
    "stopped at a look": [Stretch(LOOKS, 8)],
    "continued": [Stretch(LOOKS, 5), Stretch((6, 8, 10, 13, 16, 20))],
    "stopped twice": [Stretch(LOOKS, 5), Stretch((6, 8, 10, 13, 16, 20), 11)],
    "one look": [Stretch((10,))],
    "few looks": [Stretch((6, 10, 15, 20))],
}


def called_different(schedule: LookSchedule, error: float, trials: int = 100_000) -> list[float]:
    """The share of runs without any difference that are called different by each look, by simulation."""
    values = np.random.default_rng(20261122).normal(size=(trials, schedule.looks[-1]))
    alive, shares = np.ones(trials, bool), []
    for look in schedule.looks:
        seen = values[:, :look]
        t = seen.mean(axis=1) / (seen.std(axis=1, ddof=1) / math.sqrt(look))
        alive &= 2 * special.stdtr(look - 1, -np.abs(t)) > schedule.level(look, error)
        shares.append(1 - float(alive.mean()))
    return shares


@pytest.mark.parametrize("name", STRETCHES)
@pytest.mark.parametrize("error", [0.05, 0.023])
def test_each_look_spends_its_share_and_no_more(name: str, error: float):
    """Fixed seed; the bounds leave a right implementation one failure in a thousand seeds a look."""
    schedule, trials = make_schedule(STRETCHES[name]), 100_000
    for share, spent in zip(called_different(schedule, error, trials), schedule.spent, strict=True):
        fewest, most = stats.binom.interval(0.999, trials, error * spent)
        assert fewest <= share * trials <= most


def test_a_first_look_that_spends_much_leaves_the_second_what_it_should():
    """Who is still in after the first look is known exactly, also where many have gone."""
    for share, spent in zip(called_different(LookSchedule((4, 6), (0.5, 1.0)), 0.5), (0.25, 0.5), strict=True):
        fewest, most = stats.binom.interval(0.999, 100_000, spent)
        assert fewest <= share * 100_000 <= most


def test_a_run_to_its_last_look_spends_everything():
    assert WHOLE.looks == LOOKS
    assert WHOLE.spent[-1] == 1
    assert list(WHOLE.spent) == sorted(WHOLE.spent)


def test_the_first_look_is_at_its_own_share():
    assert WHOLE.level(4, 0.05) == pytest.approx(0.05 * (4 / 20) ** 1.5)


def test_a_look_gets_more_than_the_difference_of_the_shares():
    """Looks at nearly the same rounds are fooled together, so the sum of their levels is more than the error."""
    levels = [WHOLE.level(look, 0.05) for look in LOOKS]
    assert sum(levels) > 0.05
    assert max(levels) < 0.05


def test_a_budget_spends_half_of_what_is_left_and_more_rounds_the_rest():
    stopped = make_schedule([Stretch(LOOKS, 7)])
    assert stopped.looks == (4, 6, 7)
    assert stopped.spent[-1] == pytest.approx((1 + (6 / 20) ** 1.5) / 2)
    assert stopped.level(7, 0.05) > 3 * WHOLE.level(8, 0.05)
    continued = make_schedule([Stretch(LOOKS, 7), Stretch((8, 10, 13, 16, 20))])
    assert continued.looks == (4, 6, 7, 8, 10, 13, 16, 20)
    assert continued.spent[:3] == stopped.spent
    assert continued.spent[-1] == 1


def test_rounds_that_are_too_few_to_be_judged_spend_nothing():
    early = make_schedule([Stretch(LOOKS, 3), Stretch(LOOKS)])
    assert early == WHOLE
    assert make_schedule([Stretch(LOOKS, 1)]).looks == (FEWEST_ROUNDS,)


@pytest.mark.parametrize("few", range(1, FEWEST_ROUNDS))
def test_a_planned_look_at_too_few_rounds_spends_nothing(few: int):
    assert make_schedule([Stretch((few,)), Stretch((few + FEWEST_ROUNDS,))]) == LookSchedule(
        (few + FEWEST_ROUNDS,), (1.0,)
    )
    assert make_schedule([Stretch((few,)), Stretch(LOOKS)]) == WHOLE
    assert count_fewest((few,)) == FEWEST_ROUNDS


@pytest.mark.parametrize(
    ("rounds", "judged"),
    [
        (range(1, 21), True),
        (range(1, 18), True),
        (range(1, 17), False),
        (range(18, 21), False),
        (range(14, 21), True),
        ((), False),
    ],
)
def test_a_comparison_was_judged_at_the_last_look_if_it_had_rounds_after_the_one_before(rounds, judged: bool):
    assert WHOLE.judges_last(rounds) == judged


@pytest.mark.parametrize("enough", [(FEWEST_ROUNDS,), LOOKS])
def test_a_look_at_enough_rounds_spends_its_share(enough: tuple[int, ...]):
    assert make_schedule([Stretch(enough), Stretch((30,))]) == make_schedule([Stretch(enough)])
    assert count_fewest(enough) == FEWEST_ROUNDS


def test_a_run_that_is_stopped_before_its_first_look_spends_half():
    for stop in (FEWEST_ROUNDS, 6):
        assert make_schedule([Stretch((10, 20), stop)]) == LookSchedule((stop,), (AT_A_STOP,))
    assert make_schedule([Stretch((10, 20), FEWEST_ROUNDS - 1)]) == LookSchedule((FEWEST_ROUNDS,), (AT_A_STOP,))


def test_rounds_that_end_at_the_fewest_that_are_judged_are_judged():
    assert make_schedule([Stretch((2, 20), FEWEST_ROUNDS)]).looks == (2, FEWEST_ROUNDS)


def test_a_look_that_was_taken_is_not_taken_again():
    begun = make_schedule([Stretch((4, 6, 20), 6)])
    assert begun.looks == (4, 6)
    assert make_schedule([Stretch((4, 6, 20), 6), Stretch((6, 8))]).looks == (4, 6, 8)
    # Nothing was measured in the second stretch.
    assert make_schedule([Stretch((4, 6, 20), 6), Stretch((6,))]) == begun
    assert make_schedule([Stretch((4, 6, 20), 6), Stretch((8, 10), 6)]) == begun


@pytest.mark.parametrize("name", STRETCHES)
@pytest.mark.parametrize("error", [1e-9, 1e-7, 1e-6, 9e-6, 1e-5, 1e-4])
def test_a_tiny_error_holds_for_all_looks_together(name: str, error: float):
    """No look of a run with millions of comparisons has a level of a run with fewer."""
    schedule = make_schedule(STRETCHES[name])
    levels = [schedule.level(look, error) for look in schedule.looks]
    # Looks that are fooled together allow a little more than the sum.
    most = 1.0 if error < ERRORS[0] else 1.2
    assert sum(levels) <= most * error * schedule.spent[-1] * (1 + 1e-9)
    for look, level in zip(schedule.looks, levels, strict=True):
        assert level < schedule.level(look, 1.5 * error)
        assert schedule.adjust(level, look) == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("look", LOOKS)
def test_beyond_the_errors_that_levels_are_computed_for_a_p_counts_in_proportion(look: int):
    most = WHOLE.level(look, ERRORS[-1])
    least = WHOLE.level(look, ERRORS[0] / 10)
    assert WHOLE.adjust(least, look) == pytest.approx(ERRORS[0] / 10)
    assert WHOLE.adjust(least / 10, look) == pytest.approx(ERRORS[0] / 100)
    beyond = min(1.0, most * 1.2)
    assert WHOLE.adjust(beyond, look) == pytest.approx(min(1.0, ERRORS[-1] * beyond / most))
    assert WHOLE.adjust(1.0, look) <= 1.0


def test_exploratory_rounds_have_nothing_left_to_spend():
    assert make_schedule([Stretch(LOOKS), Stretch((30,))]) == WHOLE


def test_rounds_between_two_looks_are_judged_by_the_next_one():
    assert WHOLE.level(7, 0.05) == WHOLE.level(8, 0.05)
    assert WHOLE.level(30, 0.05) == WHOLE.level(20, 0.05)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("error", [1e-7, 1e-4, 0.002, 0.023, 0.05, 0.4])
def test_a_p_at_the_level_of_an_error_is_worth_that_error(look: int, error: float):
    assert WHOLE.adjust(WHOLE.level(look, error), look) == pytest.approx(error, rel=1e-6)
    assert WHOLE.adjust(error, look) >= error
    assert WHOLE.adjust(1.0, look) == 1.0


def test_a_run_that_is_stopped_at_a_planned_look_after_three_rounds_is_judged_there():
    stopped = make_schedule([Stretch((3, 4, 6), 3)])
    assert stopped == LookSchedule((3,), (AT_A_STOP,))
    assert stopped.fewest == FEWEST_SHARED
    assert make_schedule([Stretch((3, 4, 6), 3), Stretch((4, 6))]).looks == (3, 4, 6)
    assert make_schedule([Stretch((3, 4, 6), 2)]).fewest == FEWEST_ROUNDS


def test_fewest_rounds_are_those_of_a_first_look_that_was_planned():
    assert make_schedule([Stretch((3, 6, 10, 15, 20))]).fewest == 3
    assert WHOLE.fewest == make_schedule([Stretch((2,))]).fewest == FEWEST_ROUNDS


@pytest.mark.parametrize(
    ("function", "wanted", "root", "most_calls"),
    [
        (lambda x: -x, -0.3, 0.3, 3),
        (lambda x: (1 - x) ** 9, 0.2, 1 - 0.2 ** (1 / 9), 14),
        (lambda x: -(x**9), -0.2, 0.2 ** (1 / 9), 14),
        (lambda x: -math.log(x), 2.0, math.exp(-2), 12),
    ],
)
def test_a_limit_is_found_in_few_steps(function, wanted: float, root: float, most_calls: int):
    asked = []

    def told(x: float) -> float:
        asked.append(x)
        return function(x)

    assert _find_where(told, wanted, 1e-6, 1 - 1e-9) == pytest.approx(root, abs=1e-8)
    assert len(asked) <= most_calls


@pytest.mark.parametrize(
    ("stopped", "shares"),
    [(None, {4: 1.0, 13: 1.0, 20: 1.0}), (7, {4: 1.0, 6: 1.0, 7: 0.5})],
    ids=["by itself", "by its budget"],
)
def test_a_metric_that_ends_no_rounds_is_judged_once(stopped: int | None, shares: dict[int, float]):
    """A case that has left has all of the error, and one that may get more rounds a part of it."""
    schedule = make_bystander_schedule([Stretch(LOOKS, stopped)])
    for rounds, share in shares.items():
        assert schedule.level(rounds, 0.023) == pytest.approx(0.023 * BYSTANDER_ERROR_SHARE * share)
        assert schedule.adjust(schedule.level(rounds, 0.023), rounds) == pytest.approx(0.023)


def test_more_rounds_of_a_metric_that_ends_none_have_what_was_left():
    schedule = make_bystander_schedule([Stretch(LOOKS, 7), Stretch((8, 10, 13, 16, 20), 12)])
    spent = [schedule.level(rounds, 1.0) for rounds in (7, 12)]
    assert spent == pytest.approx([BYSTANDER_ERROR_SHARE / 2, BYSTANDER_ERROR_SHARE / 4])
    assert schedule.level(10, 1.0) == pytest.approx(BYSTANDER_ERROR_SHARE / 2)


def test_rounds_after_all_error_was_spent_change_no_level():
    schedule = make_bystander_schedule([Stretch(LOOKS), Stretch((30,))])
    assert schedule.level(30, 1.0) == schedule.level(20, 1.0) == BYSTANDER_ERROR_SHARE
    assert schedule.judges_last(range(1, 21))
    assert not schedule.judges_last(range(1, FEWEST_SHARED))


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("slowdown", [0.0, 0.05, 0.2])
def test_equal_arms_are_called_different_as_rarely_where_times_of_the_same_noise_end_the_rounds(
    correlation: float, slowdown: float
):
    """A part of the noise of a round hits both. Times are judged at all looks."""
    draw, runs, spread = np.random.default_rng(26), 6000, 0.05
    noise = draw.standard_normal((2, runs, LOOKS[-1]))
    times = np.log1p(slowdown) + spread * noise[0]
    firsts = correlation * noise[0] + np.sqrt(1 - correlation**2) * noise[1]
    looks, once = make_schedule([Stretch(LOOKS)]), make_bystander_schedule([Stretch(LOOKS)])
    different = 0
    for of_times, of_firsts in zip(times.tolist(), firsts.tolist(), strict=True):
        for look in LOOKS:
            levels = Levels(looks.level(look, 0.05), looks.level(look, DIFFERENCE_ERROR))
            if judge_estimate(Estimate(tuple(of_times[:look])), 0.05, levels).verdict != "inconclusive":
                break
        different += Estimate(tuple(of_firsts[:look])).p <= once.level(look, DIFFERENCE_ERROR)
    assert different / runs <= MOST_CALLED_DIFFERENT + 0.002
