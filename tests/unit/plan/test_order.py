"""The order of arms and bursts in a round: balanced, drawn by a seed, and nothing else."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from orchestrator.model import Arm, ArmKey
from orchestrator.plan.order import divide_sittings, interleave, visit_order
from orchestrator.plan.pairs import group_linked
from tests.support.builders import NEW, OLD, case, case_pair, target, version_pair

ARMS = ["a", "b", "c", "d"]


def test_the_order_of_a_visit_is_a_permutation():
    for visit in range(50):
        assert sorted(visit_order(ARMS, 7, "case", visit)) == ARMS
    assert [visit_order(few, 7, "case", 3) for few in ([], ["a"])] == [[], ["a"]]


def test_every_second_visit_is_the_mirror_of_the_one_before():
    for visit in range(0, 50, 2):
        assert visit_order(ARMS, 7, "case", visit + 1) == visit_order(ARMS, 7, "case", visit)[::-1]


@pytest.mark.parametrize("count", range(2, 9))
def test_every_arm_has_each_place_and_follows_each_other_arm_equally_often(count: int):
    visits = count if count % 2 == 0 else 2 * count
    orders = [visit_order(range(count), 7, "case", visit) for visit in range(3 * visits, 4 * visits)]
    places = Counter(place for order in orders for place in enumerate(order))
    followers = Counter(pair for order in orders for pair in itertools.pairwise(order))
    assert set(places.values()) == {visits // count}
    assert set(followers.values()) == {visits // count}
    assert (len(places), len(followers)) == (count**2, count * (count - 1))


def test_the_seed_the_case_and_the_design_fix_the_order_and_each_matters():
    def orders(seed: int, label: str) -> list[list[str]]:
        return [visit_order(ARMS, seed, label, visit) for visit in range(0, 40, 2)]

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


def test_equal_arms_wait_equally_long_before_each_of_their_bursts():
    """Two bursts in a row would find their data in the caches."""
    assert "".join(interleave("abc", lambda arm: 4)) == "abcabcabcabc"


def test_fewer_bursts_are_spread_over_the_visit():
    found = "".join(interleave("ab", {"a": 6, "b": 2}.__getitem__))
    assert sorted(found) == sorted("aaaaaabb")
    assert found.index("b") in (1, 2)
    assert found.rindex("b") in (5, 6)


def test_the_order_given_is_left_alone():
    items = list(ARMS)
    visit_order(items, 7, "case", 1)
    assert items == ARMS


def fitting(most: int) -> Callable[[Iterable[ArmKey]], bool]:
    return lambda arms: len(list(arms)) <= most


LINKED = tuple(case("many", k=str(number)) for number in range(7))
ALL = [Arm(one, target(version)) for one in LINKED for version in (OLD, NEW)]
COMPARED = (*map(version_pair, LINKED), *(
    case_pair(LINKED[0], other, version) for other in LINKED[1:] for version in (OLD, NEW)
))  # fmt: skip


def test_arms_that_fit_are_open_at_once_in_the_order_given():
    order = visit_order(ALL, 7, "case", 1)
    assert divide_sittings(order, COMPARED, fitting(len(ALL))) == [order]
    assert divide_sittings([], COMPARED, fitting(2)) == [[]]


@pytest.mark.parametrize("most", [2, 3, 4, 5, 6, 13])
def test_every_pair_is_together_in_a_sitting_and_no_sitting_is_too_large(most: int):
    order = visit_order(ALL, 7, "case", 1)
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
    order = visit_order(ALL, 7, "case", 1)
    sittings = divide_sittings(order, COMPARED, fitting(6))
    assert divide_sittings(order[::-1], COMPARED, fitting(6)) == [sitting[::-1] for sitting in sittings[::-1]]


def test_arms_that_nothing_is_compared_with_are_measured_too():
    sittings = divide_sittings(
        ALL, [pair for pair in COMPARED if OLD not in {arm.target for arm in pair.arms}], fitting(5)
    )
    assert {arm for sitting in sittings for arm in sitting} == set(ALL)
    assert max(map(len, sittings)) <= 5
