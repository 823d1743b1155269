"""What is measured next follows from what is known, and every change that lies on the way is found."""

import math
import random
from itertools import combinations, product

import pytest

from orchestrator.bisect.search import BisectFinding, PlannedStep, latest, search, swap_versions
from tests.support.worlds import MARGIN, World, changes, finding, solved, stepped, versions

SLOWER, FASTER = math.log(3.0), -math.log(1.5)


@pytest.mark.parametrize("count", range(2, 34))
def test_one_change_is_found_wherever_it_is_in_as_many_steps_as_halving_takes(count: int):
    candidates = versions(count)
    for place in range(1, count):
        world = stepped(candidates, {place: SLOWER})
        assert changes(solved(world, candidates)) == {(candidates[place - 1], candidates[place]): "slower"}
        assert len(world.asked) <= 1 + math.ceil(math.log2(count - 1)) if count > 2 else len(world.asked) == 1


@pytest.mark.parametrize(("one", "other"), list(product((SLOWER, FASTER), repeat=2)))
def test_two_changes_are_found_wherever_they_are_unless_they_cancel(one: float, other: float):
    candidates = versions(12)
    for first, second in combinations(range(1, 12), 2):
        found = solved(stepped(candidates, {first: one, second: other}), candidates)
        assert changes(found) == {
            (candidates[place - 1], candidates[place]): "slower" if size > 0 else "faster"
            for place, size in ((first, one), (second, other))
        }


def test_several_steps_add_up_and_each_is_told_with_its_own_size():
    candidates = versions(16)
    steps = {2: 0.9, 5: 0.2, 6: -0.3, 15: 0.4}
    found = solved(stepped(candidates, steps), candidates)
    assert {part.later: part.finding.distance for part in found.parts if part.kind == "change"} == pytest.approx(
        {candidates[place]: abs(size) for place, size in steps.items()}
    )
    assert found.overall.distance == pytest.approx(sum(steps.values()))


def test_the_largest_change_is_followed_first():
    candidates = versions(32)
    world = stepped(candidates, {3: 0.2, 20: 2.0})
    solved(world, candidates)
    stakes = [wanted.stakes for wanted in world.asked]
    assert stakes == sorted(stakes, reverse=True)


def test_ends_that_are_the_same_end_the_search_in_one_step():
    candidates = versions(9)
    world = stepped(candidates, {})
    found = solved(world, candidates)
    assert [part.kind for part in found.parts] == ["same"]
    assert len(world.asked) == 1


def test_what_cancels_is_seen_only_by_visiting_every_version():
    candidates = versions(9)
    steps = {3: SLOWER, 6: -SLOWER}
    assert changes(solved(stepped(candidates, steps), candidates)) == {}
    assert len(changes(solved(stepped(candidates, steps), candidates, every=True))) == 2


@pytest.mark.parametrize("count", range(2, 12))
def test_with_every_version_all_neighbours_are_measured(count: int):
    candidates = versions(count)
    found = solved(stepped(candidates, {}), candidates, every=True)
    assert len(found.parts) == count - 1
    assert {part.kind for part in found.parts} == {"same"}


def test_ends_that_decide_nothing_are_measured_thoroughly_and_then_it_is_said():
    candidates = versions(9)
    world = stepped(candidates, {4: 0.04}, noise=0.3, thorough_noise=0.2)
    found = solved(world, candidates)
    assert [wanted.kind for wanted in world.asked] == ["ends", "again"]
    assert [part.kind for part in found.parts] == ["unclear"]


def test_ends_that_more_rounds_tell_apart_are_searched():
    candidates = versions(9)
    world = stepped(candidates, {4: SLOWER}, blind=lambda wanted, pair: wanted.kind == "ends")
    assert changes(solved(world, candidates)) == {("4.0.0", "5.0.0"): "slower"}
    assert [wanted.kind for wanted in world.asked][:2] == ["ends", "again"]


@pytest.mark.parametrize("place", range(1, 9))
def test_a_half_that_decides_nothing_gets_more_rounds(place: int):
    candidates = versions(9)
    world = stepped(candidates, {place: SLOWER}, blind=lambda wanted, pair: not wanted.thorough and pair[0] != "1.0.0")
    assert changes(solved(world, candidates)) == {(candidates[place - 1], candidates[place]): "slower"}
    assert "again" in {wanted.kind for wanted in world.asked}


def test_a_middle_that_never_tells_is_left_for_its_neighbours():
    """The fifth version's own times scatter so that nothing is ever told of it."""
    candidates = versions(9)
    for place in (1, 2, 3, 4, 6, 7, 8):
        world = stepped(candidates, {place: SLOWER}, blind=lambda wanted, pair: "5.0.0" in pair)
        found = solved(world, candidates)
        assert "beside" in {wanted.kind for wanted in world.asked}
        told = [(part.earlier, part.later, part.kind) for part in found.parts if part.finding and part.finding.changed]
        assert len(told) == 1
        earlier, later, kind = told[0]
        assert candidates.index(earlier) < place <= candidates.index(later) or place == candidates.index(earlier)
        assert kind in ("change", "between")


def test_where_no_middle_tells_the_range_is_what_is_known():
    candidates = versions(9)
    world = stepped(candidates, {4: SLOWER}, blind=lambda wanted, pair: pair != ("1.0.0", "9.0.0"))
    found = solved(world, candidates)
    assert [(part.earlier, part.later, part.kind) for part in found.parts] == [("1.0.0", "9.0.0", "between")]
    assert sum(len(wanted.versions) == 3 for wanted in world.asked) == 3


def test_a_change_made_of_many_small_ones_is_told_as_spread():
    candidates = versions(9)
    found = solved(stepped(candidates, dict.fromkeys(range(1, 9), 0.009), noise=0.005), candidates)
    assert [part.kind for part in found.parts] == ["spread"]


def test_what_is_small_beside_the_whole_change_gets_no_more_rounds():
    candidates = versions(9)
    world = stepped(candidates, {8: 3.0}, blind=lambda wanted, pair: False, noise=0.06)
    found = solved(world, candidates)
    assert changes(found) == {("8.0.0", "9.0.0"): "slower"}
    assert "again" not in {wanted.kind for wanted in world.asked}
    assert {part.kind for part in found.parts} == {"change", "unclear"}


@pytest.mark.parametrize("place", range(1, 9))
@pytest.mark.parametrize("skipped", [("5.0.0",), ("4.0.0", "5.0.0"), ("2.0.0", "5.0.0", "6.0.0", "8.0.0")])
def test_versions_that_cannot_be_measured_are_stepped_over(place: int, skipped: tuple[str, ...]):
    candidates = versions(9)
    found = solved(stepped(candidates, {place: SLOWER}, skipped=frozenset(skipped)), candidates)
    [(earlier, later)] = changes(found)
    assert candidates.index(earlier) < place <= candidates.index(later)
    between = candidates[candidates.index(earlier) + 1 : candidates.index(later)]
    assert set(between) <= set(skipped)


def test_where_nothing_between_can_be_measured_the_ends_are_the_answer():
    candidates = versions(6)
    found = solved(stepped(candidates, {3: SLOWER}, skipped=frozenset(candidates[1:-1])), candidates)
    [part] = found.parts
    assert (part.kind, part.inside) == ("change", candidates[1:-1])


def test_a_deadline_counts_as_slow_though_nobody_knows_by_how_much():
    """From the sixth version on the case does not come to its end."""
    candidates = versions(9)

    class Late(World):
        def finding(self, wanted: PlannedStep, pair: tuple[str, str]) -> BisectFinding:
            late = [candidates.index(version) >= 5 for version in pair]
            verdict = "same" if late[0] == late[1] else "slower" if late[1] else "faster"
            if any(late):
                return BisectFinding(earlier=pair[0], later=pair[1], verdict=verdict, thorough=wanted.thorough)
            return super().finding(wanted, pair)

    found = solved(Late(dict.fromkeys(candidates, 0.0)), candidates)
    assert changes(found) == {("5.0.0", "6.0.0"): "slower"}


@pytest.mark.parametrize("seed", range(20))
def test_the_order_in_which_things_became_known_changes_nothing(seed: int):
    candidates = versions(16)
    world = stepped(candidates, {3: 0.5, 9: -0.2, 10: 1.0}, skipped=frozenset({"8.0.0", "4.0.0"}))
    findings, skipped = [], set()
    while (found := search(candidates, findings, skipped, MARGIN)).wanted:
        learned, lost = world.measure(found.wanted[0])
        findings += learned
        skipped |= lost
        mixed = random.Random(seed).sample(findings, len(findings))
        assert search(candidates, mixed, skipped, MARGIN) == search(candidates, findings, skipped, MARGIN)


def test_versions_that_come_in_between_neighbours_split_them_further():
    """As the nightlies between two releases do."""
    releases = ("1.0.0", "2.0.0", "3.0.0")
    days = ("2.0.0.dev1", "2.0.0.dev2", "2.0.0.dev3")
    both = ("1.0.0", *days, "2.0.0", "3.0.0")
    world = stepped(both, {2: SLOWER})
    findings: list[BisectFinding] = []
    while (found := search(releases, findings, (), MARGIN)).wanted:
        findings += world.measure(found.wanted[0])[0]
    assert changes(found) == {("1.0.0", "2.0.0"): "slower"}
    before = len(world.asked)
    while (found := search(both, findings, (), MARGIN)).wanted:
        findings += world.measure(found.wanted[0])[0]
    assert changes(found) == {("2.0.0.dev1", "2.0.0.dev2"): "slower"}
    assert {wanted.versions[1] for wanted in world.asked[before:]} <= set(days)


def test_of_two_findings_the_thorough_one_counts_whichever_came_first():
    quick, sure = finding("1", "2", 0.1, 0.3), finding("1", "2", 0.12, 0.02, thorough=True)
    assert latest([quick, sure]) == latest([sure, quick]) == {("1", "2"): sure}


def test_turned_round_a_slowdown_is_as_large_a_speedup():
    one = finding("1", "2", SLOWER, 0.1)
    other = swap_versions(one)
    assert (other.earlier, other.later, other.verdict) == ("2", "1", "faster")
    assert other.ratio == pytest.approx(1 / 3)
    assert other.ci_low < other.ratio < other.ci_high
    assert other.distance == pytest.approx(one.distance)
    assert swap_versions(other).ci_high == pytest.approx(one.ci_high)
