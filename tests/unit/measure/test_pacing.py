"""A budget goes to cases that it lets come to a verdict, and what it leaves to repetitions."""

import pytest

from orchestrator.measure import pacing
from orchestrator.measure.budget import Budget
from orchestrator.measure.pacing import Waiting
from tests.support.builders import case

NEVER = Waiting(10.0, 0)


def test_what_is_needed_is_the_time_until_a_verdict_and_at_least_one_visit():
    assert [Waiting(10.0, rounds).needed_s for rounds in (0, 1, 3, 4, 20)] == [40.0, 30.0, 10.0, 10.0, 10.0]
    assert Waiting(10.0, 1, behind_s=70.0).needed_s == 100.0, "seven visits more of the first round"
    assert [Waiting(10.0, rounds).is_short for rounds in (0, 3, 4)] == [True, True, False]


@pytest.mark.parametrize(
    ("left_s", "chosen"), [(0.9, set()), (4.0, {1}), (43.9, {1}), (44.0, {0, 1}), (1e9, {0, 1, 2})]
)
def test_cases_get_all_rounds_to_a_verdict_or_none_the_quickest_first(left_s: float, chosen: set[int]):
    assert pacing.choose_waiting([Waiting(10.0, 0), Waiting(1.0, 0), Waiting(90.0, 0)], left_s) == chosen


def test_where_no_case_can_be_judged_the_time_goes_to_rounds_that_count_later():
    for waiting, left_s, chosen in (
        ([Waiting(10.0, 0), Waiting(1.0, 0)], 3.9, {1}),
        ([Waiting(3.0, 1), Waiting(2.0, 0)], 5.5, {1}),
        ([Waiting(3.0, 2), Waiting(2.0, 0)], 5.5, {0}),
        ([Waiting(6.0, 3), Waiting(2.0, 0)], 5.5, {1}),
        ([Waiting(3.0, 1)], 2.9, set()),
    ):
        assert pacing.choose_waiting(waiting, left_s) == set()
        assert pacing.fill(waiting, left_s) == chosen


def test_no_budget_chooses_all():
    assert pacing.choose_waiting([NEVER] * 3, float("inf")) == {0, 1, 2}
    assert pacing.choose_waiting([], 10.0) == frozenset()


def test_what_was_begun_is_finished_before_others_get_more_rounds_and_those_before_what_was_postponed():
    waiting = [Waiting(1.0, 0, postponed=True), Waiting(1.0, 5), Waiting(10.0, 2)]
    assert pacing.choose_waiting(waiting, 20.0) == {2}
    assert pacing.choose_waiting(waiting, 21.0) == {1, 2}
    assert pacing.choose_waiting(waiting, 24.9) == {1, 2}
    assert pacing.choose_waiting(waiting, 25.0) == {0, 1, 2}


def test_what_was_begun_may_take_overtime_and_nothing_else_may():
    for index, each in enumerate((Waiting(10.0, 2), Waiting(20.0, 5), Waiting(5.0, 0, postponed=True))):
        assert pacing.choose_waiting([each, Waiting(0.1, 5)], 19.0, overtime_s=1.0) == ({1} if index else {0})
    assert pacing.choose_waiting([Waiting(10.0, 2), Waiting(1.0, 5)], 19.0, overtime_s=1.0) == {0}


def test_every_round_begins_with_a_start_of_its_workers():
    """Two cases of ten and one seconds that need four rounds each, and the four starts that they share."""
    both = [Waiting(10.0, 0), Waiting(1.0, 0)]
    assert pacing.choose_waiting(both, 52.0, start_s=2.0) == {0, 1}
    assert pacing.choose_waiting(both, 51.9, start_s=2.0) == {1}
    assert pacing.choose_waiting([Waiting(10.0, 9), Waiting(1.0, 9)], 13.0, start_s=2.0) == {0, 1}
    assert pacing.choose_waiting([Waiting(10.0, 9), Waiting(1.0, 9)], 12.9, start_s=2.0) == {1}
    assert pacing.choose_waiting([Waiting(10.0, 0)], 11.0, start_s=2.0) == set()


@pytest.mark.parametrize(
    ("start_s", "visits_s", "visits"), [(0.0, 1.0, 1), (2.5, 18.0, 1), (2.5, 5.0, 2), (2.5, 1.2, 4), (9.0, 0.01, 8)]
)
def test_a_round_visits_its_cases_more_often_the_longer_its_workers_take_to_start(
    start_s: float, visits_s: float, visits: int
):
    assert pacing.visits_per_round(start_s, visits_s) == visits


def test_a_round_of_nothing_has_one_visit():
    assert pacing.visits_per_round(3.0, 0.0) == 1


@pytest.mark.parametrize(
    ("left_s", "rounds", "visits"),
    [
        # 4 rounds of three visits would give an interval that is nearly twice as wide as 10 rounds of one.
        (90.0, 1, 1),
        # Enough rounds fit: then they are as efficient as without a limit.
        (300.0, 0, 3),
        (2000.0, 0, 3),
        # Nothing fits; then a round is as short as can be.
        (1.0, 0, 1),
    ],
)
def test_within_a_budget_the_interval_decides_how_often_a_round_visits(left_s: float, rounds: int, visits: int):
    assert pacing.visits_per_round(5.0, 4.0, left_s, rounds, 20) == visits


@pytest.mark.parametrize(("behind_s", "visits"), [(0.0, 3), (4.0, 3), (40.0, 2)])
def test_what_the_first_round_lacks_is_time_that_no_other_round_has(behind_s: float, visits: int):
    assert pacing.visits_per_round(5.0, 4.0, 300.0, 1, 20, behind_s) == visits


def test_rounds_that_fit_are_whole_ones():
    assert pacing.rounds_that_fit(5.0, 24.0) == 4
    assert pacing.rounds_that_fit(10.0, -100.0) == 0
    assert pacing.rounds_that_fit(0.0, 10.0) == 0


def test_a_case_costs_what_its_last_visit_took_and_a_new_one_the_average():
    a, b, new = map(case, ("a", "b", "new"))
    budget = Budget(None, started=0.0)
    assert budget.estimate_s([(new,)]) == 0.0
    budget.learn((a,), 1.0)
    assert budget.estimate_s([(new,)]) == 1.0
    budget.learn((b,), 3.0)
    assert budget.estimate_s([(a, b), (new,)]) == 6.0
    budget.learn((a, b), 12.0)
    assert budget.estimate_s([(a,), (new,)]) == 12.0


def test_a_visit_is_repeated_in_time_that_no_verdict_and_no_case_ahead_needs():
    visited, ahead = [Waiting(10.0, 1), Waiting(5.0, 4)], [Waiting(10.0, 2), Waiting(3.0, 9)]
    needed_s = 30.0 + 20.0 + 3.0
    assert pacing.may_repeat(10.0, visited, ahead, left_s=needed_s + 10.0)
    assert not pacing.may_repeat(10.0, visited, ahead, left_s=needed_s + 9.0)
    assert not pacing.may_repeat(0.0, [], [], left_s=-1.0)


def test_at_most_a_fifth_of_the_rounds_until_then_is_repeated():
    assert [number for number in range(1, 21) if pacing.within_share([1], number)] == list(range(10, 21))
    assert pacing.within_share([0, 0], 1)
    assert not pacing.within_share([0, 1], 1)
