"""A budget goes to the rounds before the first look, and every case gets two."""

import pytest

from orchestrator.measure import pacing


@pytest.mark.parametrize(
    ("budget_s", "number", "limit_s"),
    [(10.0, 1, 70.0), (10.0, 2, 70.0), (10.0, 3, 10.0), (100.0, 1, 200.0), (100.0, 2, 200.0), (100.0, 6, 100.0)],
)
def test_the_first_two_rounds_have_more_time_than_the_budget(budget_s: float, number: int, limit_s: float):
    assert pacing.limit_s(budget_s, number) == limit_s


def test_a_case_costs_what_its_last_visit_took_and_a_new_one_the_average():
    assert pacing.estimate_s(["a", "b", "new"], {"a": 1.0, "b": 3.0}) == 6.0
    assert pacing.estimate_s(["new"], {}) == 0.0


@pytest.mark.parametrize(("number", "ahead_s"), [(1, 54.0), (5, 14.0), (6, 4.0), (7, 0.0), (20, 0.0)])
def test_ahead_is_the_rest_of_this_round_and_the_rounds_up_to_the_first_look(number: int, ahead_s: float):
    assert pacing.ahead_s(number, 6, rest_s=4.0, round_s=10.0) == ahead_s


def test_a_visit_is_repeated_in_time_that_the_first_look_does_not_need():
    assert pacing.may_repeat(left_s=64.0, visit_s=10.0, needed_s=54.0)
    assert not pacing.may_repeat(left_s=63.0, visit_s=10.0, needed_s=54.0)
    assert not pacing.may_repeat(left_s=-1.0, visit_s=0.0, needed_s=0.0)


def test_at_most_a_fifth_of_the_rounds_until_then_is_repeated():
    assert [number for number in range(1, 21) if pacing.within_share([1], number)] == list(range(10, 21))
    assert pacing.within_share([0, 0], 1)
    assert not pacing.within_share([0, 1], 1)
