"""What came out, in a sentence a version that says how many, the worst of them, and what stayed open."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.model import Evaluation
from orchestrator.reports.summary import sentences
from tests.support import scenes
from tests.support.builders import NEW, OLD, arm, case, comparison, evaluation, manifest, plan, target, unmeasured

SIZES = tuple(case("power", style="eager", size=str(size)) for size in range(4))


def ended(*verdicts: tuple[float | None, str]) -> Evaluation:
    """A case a verdict, two versions."""
    asked = plan(SIZES[: len(verdicts)])
    return Evaluation(
        plan=asked,
        manifest=manifest(),
        arms=tuple(arm(of, version) for of in asked.cases for version in asked.targets),
        comparisons=tuple(
            comparison(pair, ratio, verdict) for pair, (ratio, verdict) in zip(asked.pairs, verdicts, strict=True)
        ),
        warnings=(),
    )


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ([(2.0, "slower")], "2.0.0 is slower than 1.0.0 in 1 of 1 case (power, 2.00x)."),
        (
            [(2.0, "slower"), (3.0, "slower"), (1.0, "same")],
            "2.0.0 is slower than 1.0.0 in 2 of 3 cases (most in power 1, 3.00x); 1 same.",
        ),
        (
            [(0.2, "faster"), (0.5, "faster"), (1.1, "inconclusive"), (None, "inconclusive")],
            "2.0.0 is faster than 1.0.0 in 2 of 4 cases (most in power 0, 0.20x); 1 inconclusive, 1 without a time.",
        ),
        (
            [(2.0, "slower"), (0.5, "faster"), (0.4, "faster")],
            "2.0.0 is slower than 1.0.0 in 1 of 3 cases (power 0, 2.00x) and faster in 2 (most in power 2, 0.40x).",
        ),
        (
            [(1.0, "same"), (1.01, "same")],
            "2.0.0 is the same as 1.0.0 in 2 of 2 cases.",
        ),
        (
            [(1.0, "same"), (1.1, "inconclusive"), (None, "inconclusive")],
            "2.0.0 is the same as 1.0.0 in 1 of 3 cases; 1 inconclusive, 1 without a time.",
        ),
        (
            [(1.1, "inconclusive"), (1.2, "inconclusive")],
            "2.0.0 against 1.0.0: nothing decided in 2 cases: 2 inconclusive.",
        ),
        ([(None, "inconclusive")], "2.0.0 against 1.0.0: nothing could be compared."),
    ],
)
def test_it_counts_names_the_worst_and_leaves_nothing_out(verdicts: Sequence[tuple[float | None, str]], told: str):
    assert sentences(ended(*verdicts)) == (told,)


def test_each_version_has_a_sentence_and_the_control_arm_none():
    everything = scenes.everything()
    versions = (*everything.plan.targets, target("1.14.0+control"))
    told = sentences(replace(everything, plan=replace(everything.plan, targets=versions)))
    assert [one.split(" ")[0] for one in told] == ["2.0.0", "2.13.0"]


def test_a_version_of_which_nothing_was_measured_says_so():
    asked = plan([SIZES[0]])
    arms = (arm(SIZES[0], OLD), unmeasured(SIZES[0], NEW, "died", "no disk"))
    assert sentences(evaluation(plan=asked, arms=arms, comparisons=())) == (
        "2.0.0 against 1.0.0: nothing could be compared.",
    )


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (
            [(1.2, "slower", True), (1.0, "same", False), (2.0, "slower", False)],
            "2.0.0 is slower than 1.0.0 in 1 of 3 cases (power 2, 2.00x); 1 same, 1 not certain among all comparisons.",
        ),
        (
            [(1.2, "slower", True), (0.8, "faster", True), (1.0, "same", False), (1.1, "inconclusive", False)],
            "2.0.0 is the same as 1.0.0 in 1 of 4 cases; 2 not certain among all comparisons, 1 inconclusive.",
        ),
        (
            [(1.2, "slower", True)],
            "2.0.0 against 1.0.0: nothing decided in 1 case: 1 not certain among all comparisons.",
        ),
    ],
)
def test_what_is_certain_in_its_row_alone_is_counted_and_not_named(
    verdicts: Sequence[tuple[float, str, bool]], told: str
):
    found = ended(*(each[:2] for each in verdicts))
    marked = [
        replace(each, row_only=row_only) for each, (_, _, row_only) in zip(found.comparisons, verdicts, strict=True)
    ]
    assert sentences(replace(found, comparisons=tuple(marked))) == (told,)


def test_a_slight_difference_is_named_if_it_is_certain_in_the_report():
    found = ended((1.02, "same"), (1.02, "same"))
    sure, row_only = (replace(each, size="slight") for each in found.comparisons)
    (told,) = sentences(replace(found, comparisons=(sure, replace(row_only, row_only=True))))
    assert told == "2.0.0 is the same as 1.0.0 in 2 of 2 cases (1 slightly slower)."
