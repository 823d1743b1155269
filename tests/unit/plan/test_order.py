"""The order of arms and bursts in a round: balanced, drawn by a seed, and nothing else."""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from orchestrator.model import Arm, ArmKey
from orchestrator.plan.order import divide_sittings, interleave, round_order
from orchestrator.plan.pairs import group_linked
from tests.support.builders import NEW, OLD, case, case_pair, target, version_pair

ARMS = ["a", "b", "c", "d"]


def test_a_rounds_order_is_a_permutation():
    for number in range(1, 50):
        assert sorted(round_order(ARMS, 7, "case", number)) == ARMS


def test_every_second_round_is_the_mirror_of_the_round_before():
    for number in range(1, 50, 2):
        assert round_order(ARMS, 7, "case", number + 1) == round_order(ARMS, 7, "case", number)[::-1]


def test_every_arm_is_as_often_early_as_late():
    """Positions counted from the front and from the back agree over every two rounds."""
    places = Counter()
    for number in range(1, 21):
        for place, name in enumerate(round_order(ARMS, 7, "case", number)):
            places[name] += place
    assert set(places.values()) == {20 * (len(ARMS) - 1) // 2}


def test_the_seed_the_case_and_the_pair_of_rounds_fix_the_order_and_each_matters():
    def orders(seed: int, label: str) -> list[list[str]]:
        return [round_order(ARMS, seed, label, number) for number in range(1, 21, 2)]

    assert orders(7, "case") == orders(7, "case")
    assert orders(7, "case") != orders(8, "case")
    assert orders(7, "case") != orders(7, "other")
    assert len({tuple(order) for order in orders(7, "case")}) > 3


def test_cases_that_are_compared_are_linked_however_indirectly():
    a, b, c, d = (case(name) for name in "abcd")
    pairs = [case_pair(c, a), version_pair(b), case_pair(a, d)]
    assert group_linked([a, b, c, d], pairs) == ((c, a, d), (b,))
    assert group_linked([a, b], pairs) == ((a,), (b,)), "what has left the rotation links nothing"
    assert group_linked([a, b], []) == ((a,), (b,))


def test_bursts_of_equal_arms_go_forth_and_back():
    assert "".join(interleave("abc", lambda arm: 4)) == "abccbaabccba"


def test_fewer_bursts_are_spread_over_the_visit():
    found = "".join(interleave("ab", {"a": 6, "b": 2}.__getitem__))
    assert sorted(found) == sorted("aaaaaabb")
    assert found.index("b") in (1, 2)
    assert found.rindex("b") in (5, 6)


def test_the_order_given_is_left_alone():
    items = list(ARMS)
    round_order(items, 7, "case", 1)
    assert items == ARMS


def fitting(most: int) -> Callable[[Iterable[ArmKey]], bool]:
    return lambda arms: len(list(arms)) <= most


LINKED = tuple(case("many", k=str(number)) for number in range(7))
ALL = [Arm(one, target(version)) for one in LINKED for version in (OLD, NEW)]
COMPARED = (*map(version_pair, LINKED), *(
    case_pair(LINKED[0], other, version) for other in LINKED[1:] for version in (OLD, NEW)
))  # fmt: skip


def test_arms_that_fit_are_open_at_once_in_the_order_given():
    order = round_order(ALL, 7, "case", 1)
    assert divide_sittings(order, COMPARED, fitting(len(ALL))) == [order]
    assert divide_sittings([], COMPARED, fitting(2)) == [[]]


@pytest.mark.parametrize("most", [2, 3, 4, 5, 6, 13])
def test_every_pair_is_together_in_a_sitting_and_no_sitting_is_too_large(most: int):
    order = round_order(ALL, 7, "case", 1)
    sittings = divide_sittings(order, COMPARED, fitting(most))
    assert all(len(sitting) == len(set(sitting)) <= most for sitting in sittings)
    assert {arm for sitting in sittings for arm in sitting} == set(ALL)
    together = [{arm.key for arm in sitting} for sitting in sittings]
    assert all(any(set(pair.arms) <= keys for keys in together) for pair in COMPARED)
    assert all(sitting == sorted(sitting, key=order.index) for sitting in sittings)


def test_groups_are_divided_around_their_common_baseline():
    sittings = divide_sittings(ALL, COMPARED, fitting(6))
    assert [sorted({arm.case.params[0][1] for arm in sitting}) for sitting in sittings] == [
        ["0", "1", "2"], ["0", "3", "4"], ["0", "5", "6"],
    ]  # fmt: skip
    assert all({arm.target for arm in sitting} == {OLD, NEW} for sitting in sittings)


def test_a_mirrored_order_has_the_same_sittings_backwards():
    order = round_order(ALL, 7, "case", 1)
    sittings = divide_sittings(order, COMPARED, fitting(6))
    assert divide_sittings(order[::-1], COMPARED, fitting(6)) == [sitting[::-1] for sitting in sittings[::-1]]


def test_arms_that_nothing_is_compared_with_are_measured_too():
    sittings = divide_sittings(
        ALL, [pair for pair in COMPARED if OLD not in {arm.target for arm in pair.arms}], fitting(5)
    )
    assert {arm for sitting in sittings for arm in sitting} == set(ALL)
    assert max(map(len, sittings)) <= 5
