"""When a verdict on a busy machine contradicts that of a quiet one."""

import pytest

from bench.busy import Outcome, contradictions, contradicts
from tests.support.builders import arm, case, comparison, evaluation, plan, unmeasured, version_pair

CASE, OTHER = case(), case("other")


def judged(of=CASE, **changes):
    return comparison(version_pair(of), **changes)


def outcome(*comparisons, arms=(), postponed=()):
    made = evaluation(plan=plan([CASE, OTHER]), arms=tuple(arms), comparisons=comparisons)
    return Outcome("busy-1", made, frozenset(postponed), 100.0)


@pytest.mark.parametrize(
    ("quiet", "busy", "contrary"),
    [
        (judged(ratio=1.2, verdict="slower"), judged(ratio=1.3, verdict="slower"), False),
        (judged(ratio=1.2, verdict="slower"), judged(ratio=0.8, verdict="faster"), True),
        (judged(ratio=1.2, verdict="slower"), judged(ratio=1.0, verdict="inconclusive"), False),
        (judged(ratio=1.04, verdict="slower"), judged(ratio=1.01, verdict="same"), False),
        (judged(ratio=1.2, verdict="slower"), judged(ratio=1.0, verdict="same"), True),
        (judged(ratio=1.0, verdict="same"), judged(ratio=0.8, verdict="faster"), True),
    ],
)
def test_verdicts_contradict_each_other_if_not_both_can_be_right(quiet, busy, contrary):
    assert contradicts(busy, quiet) == contrary
    assert bool(contradictions(outcome(quiet), outcome(busy))) == contrary


def test_only_comparisons_of_the_same_arms_contradict_each_other():
    quiet, busy = judged(ratio=1.2, verdict="slower"), judged(OTHER, ratio=0.8, verdict="faster")
    assert contradictions(outcome(quiet), outcome(busy)) == []


def test_what_was_postponed_is_undecided_and_what_a_version_refuses_is_left_out():
    open_ = judged(OTHER, ratio=None, verdict="inconclusive", reason="postponed")
    seen = outcome(judged(), open_, arms=[arm(CASE), arm(OTHER)], postponed=[OTHER.label])
    assert (seen.decided, len(seen.comparisons), seen.left_out) == (1, 2, 1)
    refused = unmeasured(OTHER, "2.0.0", "refused", "no")
    assert len(outcome(judged(), open_, arms=[arm(CASE), refused]).comparisons) == 1
