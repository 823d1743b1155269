"""From contrasts to the answer on a claim: one statement that fails fails it, and doubt is never agreement."""

from dataclasses import replace

import pytest

from orchestrator.model import Claim, Comparison, Contrast, Expectation
from orchestrator.results.claims import judge_claims
from orchestrator.stats.contrasts import compare
from tests.support.builders import (
    NEW,
    OLD,
    arm,
    case,
    claim,
    comparison,
    contrast,
    plan,
    target,
    unmeasured,
    version_pair,
)

CASE = case()
PAIR = replace(version_pair(CASE), margin=2.0)


def effect_on_pair(effect: str = "slower") -> Claim:
    return claim(Expectation(pair=PAIR, effect=effect, published=9.0))


def judged(of: Claim, *contrasts: Contrast, **changes: object):
    made: Comparison = comparison(plan=plan([CASE], claims=(of,)), contrasts=contrasts, **changes)
    [found] = judge_claims(made, [of])
    return found


@pytest.mark.parametrize(
    ("effect", "verdict", "answer"),
    [
        ("slower", "slower", "reproduced"),
        ("slower", "same", "not reproduced"),
        ("slower", "faster", "not reproduced"),
        ("slower", "inconclusive", "inconclusive"),
        ("more", "slower", "reproduced"),
        ("faster", "faster", "reproduced"),
        ("less", "faster", "reproduced"),
        ("faster", "slower", "not reproduced"),
        ("same", "same", "reproduced"),
        ("same", "slower", "not reproduced"),
        ("same", "faster", "not reproduced"),
        ("same", "inconclusive", "inconclusive"),
    ],
)
def test_the_verdict_at_the_claims_own_margin_is_the_answer(effect: str, verdict: str, answer: str):
    reason, size = ("noisy", None) if verdict == "inconclusive" else ("", "beyond")
    found = judged(effect_on_pair(effect), contrast(PAIR, 4.0, verdict, reason, size=size))
    assert found.answer == answer
    assert bool(found.reason) == (answer != "reproduced")
    assert found.headline.ratio == 4.0


@pytest.mark.parametrize(
    ("ratio", "ci_low", "ci_high", "size", "answer"),
    [
        (3.4, 3.1, 3.7, "beyond", "not reproduced"),
        (3.2, 2.8, 3.6, "clear", "inconclusive"),
        (0.3, 0.28, 0.32, "beyond", "not reproduced"),
        (0.32, 0.3, 0.36, "clear", "inconclusive"),
    ],
)
def test_sameness_is_refuted_by_an_interval_and_not_by_an_estimate(
    ratio: float, ci_low: float, ci_high: float, size: str, answer: str
):
    """The margin of 2.0 allows up to three times: where the interval reaches into it, it is open."""
    verdict = "slower" if ratio > 1 else "faster"
    found = judged(effect_on_pair("same"), contrast(PAIR, ratio, verdict, ci_low=ci_low, ci_high=ci_high, size=size))
    assert (found.answer, bool(found.reason)) == (answer, True)


def logs(value: float, wobble: float = 0.01) -> dict[int, float]:
    return {number: value + wobble * (-1) ** number for number in range(1, 7)}


@pytest.mark.parametrize(
    ("shift", "answer"),
    [
        (2.3, "reproduced"),
        (0.69, "not reproduced"),
        (1.0, "inconclusive"),
        (1.0986, "inconclusive"),
        (-2.3, "not reproduced"),
    ],
)
def test_how_much_must_be_seen_is_judged_by_the_interval(shift: float, answer: str):
    """A margin of 2.0 asks for three times: ten times is enough, twice is too little, and the bound itself is open."""
    asked = plan([CASE], pairs=(PAIR,))
    samples = {(CASE.label, target(OLD), "steady"): logs(0), (CASE.label, target(NEW), "steady"): logs(shift, -0.05)}
    [found] = compare(asked, samples, [arm(CASE, OLD), arm(CASE, NEW)])
    assert judged(effect_on_pair(), found).answer == answer


def test_all_statements_have_to_hold():
    other = replace(PAIR, metric="traces")
    both = claim(
        Expectation(pair=PAIR, effect="slower", published=None), Expectation(pair=other, effect="same", published=None)
    )
    held, failed = contrast(PAIR, 4.0, "slower"), contrast(other, 9.0, "slower", size="beyond")
    open_ = contrast(other, 9.0, "inconclusive", "noisy")
    assert judged(both, held, replace(failed, verdict="same")).answer == "reproduced"
    assert judged(both, held, failed).answer == "not reproduced"
    assert judged(both, held, open_).answer == "inconclusive"
    assert judged(both, held, open_).reason == "noisy"
    assert judged(both, replace(open_, pair=PAIR), failed).answer == "not reproduced"


def test_a_case_that_checks_itself():
    def answer(of) -> str:
        checked = claim(holds=((CASE.label, NEW),))
        return judged(checked, arms=(arm(CASE, OLD), of)).answer

    assert answer(arm(CASE, NEW)) == "reproduced"
    assert (
        answer(unmeasured(CASE, NEW, "died", "AssertionError: it ran (raised in a call)", refuted=True))
        == "not reproduced"
    )
    assert answer(unmeasured(CASE, NEW, "died", "AssertionError in a log, and killed")) == "inconclusive"
    assert answer(unmeasured(CASE, NEW, "died", "killed by SIGKILL")) == "inconclusive"
    assert answer(unmeasured(CASE, NEW, "refused", "No such op.")) == "inconclusive"


def test_what_is_said_of_another_device_is_not_judged():
    assert judged(claim(devices=("gpu",))).answer == "needs a GPU"
    on_gpu = comparison(plan=plan([CASE], device="gpu"))
    [found] = judge_claims(on_gpu, [claim(devices=("cpu",))])
    assert found.answer == "inconclusive"
    assert "without --gpu" in found.reason
