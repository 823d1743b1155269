"""What the rungs of a ladder explain, with findings whose truth is known."""

import itertools
import math

import pytest

from orchestrator.bisect.search import BisectFinding
from orchestrator.why.ladder import (
    MOST_RUNGS,
    Ladder,
    MeasuredLadder,
    Rung,
    explain,
    find_divisible,
    group_causes,
    is_settled,
)

MARGIN = math.log1p(0.05)
WIDTH = 0.02


def found(earlier: str, later: str, log: float, width: float = WIDTH) -> BisectFinding:
    certain = abs(log) > width
    verdict = ("slower" if log > 0 else "faster") if certain and abs(log) > MARGIN else "same"
    if width > MARGIN:
        verdict = verdict if abs(log) > width else "inconclusive"
    return BisectFinding(
        earlier=earlier, later=later, verdict=verdict, ratio=math.exp(log), ci_low=math.exp(log - width),
        ci_high=math.exp(log + width), rounds=6,
    )  # fmt: skip


def measured(
    *steps: float, causes: tuple[tuple[str, ...], ...] = (), dead: tuple[str, ...] = (), names: str = "ABCDEFGH",
    width: float = WIDTH,
) -> MeasuredLadder:  # fmt: skip
    """A ladder whose neighbours differ by these logs."""
    names = tuple(names[: len(steps) + 1])
    rungs = tuple(Rung(causes=of_rung) for of_rung in causes or tuple((f"cause {each}",) for each in names[1:]))
    logs = dict(zip(names, itertools.accumulate(steps, initial=0.0), strict=True))
    findings = {
        (one, other): found(one, other, logs[other] - logs[one], width)
        for one, other in itertools.combinations(names, 2)
        if not {one, other} & set(dead)
    }
    texts = tuple(f"text of {name}" for name in names)
    return MeasuredLadder(
        ladder=Ladder(texts=texts, names=names, rungs=rungs),
        findings=findings,
        deaths={name: f"{name} is dead" for name in dead},
    )


def titles(explanation) -> list[str]:
    return [rung.rung.title for rung in explanation.mattering]


def test_the_rung_with_the_change_matters_and_has_its_share():
    explanation = explain([measured(0.0, 0.7, 0.0)])
    assert titles(explanation) == ["cause C"]
    assert explanation.share(explanation.mattering[0]) == pytest.approx(1.0)
    assert explanation.product == pytest.approx(0.7)


def test_no_rung_matters_where_the_ends_are_equal():
    explanation = explain([measured(0.0, 0.0, 0.0)])
    assert titles(explanation) == []
    assert explanation.whole.verdict == "same"
    assert explanation.share(explanation.rungs[0]) is None


def test_a_small_rung_next_to_a_large_one_is_not_followed():
    assert titles(explain([measured(0.08, 0.7)])) == ["cause C"]
    assert titles(explain([measured(0.3, 0.7)])) == ["cause C", "cause B"]


def test_rungs_that_cancel_each_other_both_matter():
    explanation = explain([measured(0.7, -0.7)])
    assert explanation.whole.verdict == "same"
    assert titles(explanation) == ["cause B", "cause C"]


def test_a_later_ladder_replaces_the_rung_that_it_splits():
    whole = measured(0.7, 0.0, causes=(("a", "b", "c"), ("d",)))
    inner = measured(0.0, 0.7, names="AXB", causes=(("a",), ("b", "c")))
    explanation = explain([whole, inner])
    assert [rung.rung.title for rung in explanation.rungs] == ["a", "b, c", "d"]
    assert titles(explanation) == ["b, c"]
    assert [rung.ladder for rung in explanation.rungs] == [1, 1, 0]


def test_the_group_that_matters_is_split_next_and_each_only_once():
    explanation = explain([measured(0.7, 0.3, 0.0, causes=(("a",), ("b", "c"), ("d", "e")))])
    rung = find_divisible(explanation, ())
    assert rung is not None
    assert rung.rung.causes == ("b", "c")
    assert find_divisible(explanation, [(rung.lower, rung.upper)]) is None
    assert find_divisible(explain([measured(0.0, 0.0, causes=(("a", "b"), ("c",)))]), ()) is None


def test_a_target_that_dies_between_two_that_live_joins_its_rungs():
    explanation = explain([measured(0.0, 0.0, 0.7, dead=("C",))])
    assert [rung.rung.title for rung in explanation.rungs] == ["cause B", "cause C, cause D"]
    assert titles(explanation) == ["cause C, cause D"]


def test_the_rung_from_which_on_nothing_lives_is_the_cause_of_a_death():
    explanation = explain([measured(0.0, 0.0, 0.0, dead=("C", "D"))])
    assert titles(explanation) == ["cause C"]
    assert explanation.death == "C: C is dead" or explanation.death.endswith("is dead")
    assert explanation.mattering[0].death == "C is dead"


def test_all_that_is_between_a_living_end_and_a_dead_one_is_divisible():
    explanation = explain([measured(0.0, dead=("B",), causes=(("a", "b", "c"),))])
    rung = find_divisible(explanation, ())
    assert rung is not None
    assert rung.rung.causes == ("a", "b", "c")


@pytest.mark.parametrize(
    ("steps", "width", "settled"),
    [
        ((0.0, 0.7), 0.02, True),
        # The rung without a change is undecided, but it is small next to the whole.
        ((0.0, 0.7), 0.12, True),
        ((0.0, 0.7), 0.3, False),
        ((0.0, 0.0), 0.3, False),
        ((0.0, 0.0), 0.02, True),
        ((0.7, -0.7), 0.02, True),
    ],
)
def test_rounds_end_once_it_is_known_which_rungs_matter(steps: tuple[float, ...], width: float, settled: bool):
    assert is_settled(measured(*steps, width=width), MARGIN) is settled


def test_rounds_end_if_an_end_died_and_not_if_another_target_did():
    assert is_settled(measured(0.0, 0.3, 0.0, dead=("D",), width=1.0), MARGIN)
    assert is_settled(measured(0.0, 0.3, 0.0, dead=("A",), width=1.0), MARGIN)
    assert not is_settled(measured(0.0, 0.3, 0.0, dead=("B",), width=1.0), MARGIN)


@pytest.mark.parametrize("count", range(1, 12))
def test_causes_make_at_most_four_groups_and_none_is_lost(count: int):
    causes = [f"{number}" for number in range(count)]
    for kinds in ([causes], [[each] for each in causes], [causes[:1], causes[1:]]):
        groups = group_causes(kinds, MOST_RUNGS)
        assert [each for group in groups for each in group] == causes
        assert len(groups) == min(count, MOST_RUNGS)
