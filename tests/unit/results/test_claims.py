"""From comparisons to the answer on a claim: one statement that fails fails it, and doubt is never agreement."""

import math
from dataclasses import replace

import pytest

from orchestrator.model import (
    ArmKey,
    Bound,
    CaseSet,
    Claim,
    Comparison,
    Evaluation,
    OutputComparison,
    Part,
    Returns,
    Share,
    Shares,
)
from orchestrator.results.claims import judge_claims
from orchestrator.stats.comparisons import judge_pairs
from tests.support.builders import (
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    change_arm,
    claim,
    comparison,
    evaluation,
    expectation,
    mean,
    plan,
    target,
    unmeasured,
    version_pair,
)

CASE = case()
PAIR = replace(version_pair(CASE), margin=2.0)


def effect_on_pair(effect: str = "slower") -> Claim:
    return claim(expectation(pair=PAIR, effect=effect, published=None))


def judged(of: Claim, *comparisons: Comparison, **changes: object):
    made: Evaluation = evaluation(plan=plan([CASE], claims=(of,)), comparisons=comparisons, **changes)
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
    found = judged(effect_on_pair(effect), comparison(PAIR, 4.0, verdict, reason, size=size))
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
    found = judged(effect_on_pair("same"), comparison(PAIR, ratio, verdict, ci_low=ci_low, ci_high=ci_high, size=size))
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
    samples = {(CASE.label, target(OLD), "time"): logs(0), (CASE.label, target(NEW), "time"): logs(shift, -0.05)}
    [found] = judge_pairs(asked, samples, [arm(CASE, OLD), arm(CASE, NEW)])
    assert judged(effect_on_pair(), found).answer == answer


LEAK = replace(version_pair(CASE), metric="leak", margin=1024.0)


def leaking(difference: float, verdict: str, **changes) -> Comparison:
    ends = {"difference_low": difference - 100, "difference_high": difference + 100}
    return comparison(LEAK, None, verdict, difference=difference, **ends, **changes)


@pytest.mark.parametrize(
    ("effect", "found", "answer"),
    [
        ("more", leaking(8192, "slower", size="beyond"), "reproduced"),
        ("more", leaking(700, "slower", size="clear"), "inconclusive"),
        ("more", leaking(10, "same"), "not reproduced"),
        ("more", leaking(-8192, "faster", size="beyond"), "not reproduced"),
        ("less", leaking(-8192, "faster", size="beyond"), "reproduced"),
        ("same", leaking(10, "same"), "reproduced"),
        ("same", leaking(8192, "slower", size="beyond"), "not reproduced"),
        ("not more", leaking(10, "same"), "reproduced"),
        ("not more", leaking(8192, "slower", size="beyond"), "not reproduced"),
        ("not more", leaking(1000, "slower", size="clear"), "inconclusive"),
        ("not less", leaking(8192, "slower", size="beyond"), "reproduced"),
    ],
)
def test_a_claim_about_a_leak_is_judged_in_bytes(effect: str, found: Comparison, answer: str):
    assert judged(claim(expectation(pair=LEAK, effect=effect, published=None)), found).answer == answer


def test_all_statements_have_to_hold():
    other = replace(PAIR, metric="memory")
    both = claim(
        expectation(pair=PAIR, effect="slower", published=None), expectation(pair=other, effect="same", published=None)
    )
    held, failed = comparison(PAIR, 4.0, "slower"), comparison(other, 9.0, "slower", size="beyond")
    open_ = comparison(other, 9.0, "inconclusive", "noisy")
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
    on_gpu = evaluation(plan=plan([CASE], device="gpu"))
    [found] = judge_claims(on_gpu, [claim(devices=("cpu",))])
    assert found.answer == "inconclusive"
    assert "without --gpu" in found.reason


@pytest.mark.parametrize(
    ("ratio", "ci_low", "ci_high", "answer"),
    [
        (9.5, 8.0, 11.0, "reproduced"),
        (4.0, 3.5, 9.1, "reproduced"),
        (26.0, 20.0, 33.0, "reproduced"),
        (4.0, 3.5, 4.6, "reproduced, smaller"),
        (2.5, 2.2, 8.0, "inconclusive"),
    ],
)
def test_an_interval_that_leaves_out_a_larger_published_ratio_is_said(ratio, ci_low, ci_high, answer):
    found = judged(
        claim(expectation(pair=PAIR, effect="slower", published=9.0)),
        comparison(PAIR, ratio, "slower", ci_low=ci_low, ci_high=ci_high, size="beyond"),
    )
    assert found.answer == answer
    assert ("leaves out the published 9x" in found.reason) == (answer == "reproduced, smaller")


def test_a_gain_is_as_large_as_published_by_its_far_end_too():
    said = claim(expectation(pair=PAIR, effect="faster", published=9.0))
    assert judged(said, comparison(PAIR, 0.2, "faster", ci_low=0.1, ci_high=0.3)).answer == "reproduced"
    assert judged(said, comparison(PAIR, 0.2, "faster", ci_low=0.15, ci_high=0.3)).answer == "reproduced, smaller"


@pytest.mark.parametrize(
    ("effect", "ratio", "ci_low", "ci_high", "answer"),
    [
        ("not slower", 1.1, 0.9, 1.4, "reproduced"),
        ("not slower", 0.2, 0.1, 0.3, "reproduced"),
        ("not slower", 2.5, 1.5, 4.0, "inconclusive"),
        ("not slower", 5.0, 3.5, 7.0, "not reproduced"),
        ("not faster", 0.9, 0.7, 1.2, "reproduced"),
        ("not faster", 0.2, 0.1, 0.3, "not reproduced"),
        ("not more", 1.0, 0.9, 1.1, "reproduced"),
        ("not less", 0.4, 0.3, 0.5, "inconclusive"),
    ],
)
def test_a_control_must_not_show_the_effect(effect: str, ratio: float, ci_low: float, ci_high: float, answer: str):
    """The margin of 2.0 is what the effect needs: three times."""
    made = comparison(PAIR, ratio, "inconclusive", ci_low=ci_low, ci_high=ci_high)
    found = judged(claim(expectation(pair=PAIR, effect=effect, published=9.0)), made)
    assert (found.answer, bool(found.reason)) == (answer, answer != "reproduced")


def test_a_control_without_an_interval_is_open():
    made = comparison(PAIR, 1.0, "inconclusive", "3 rounds are too few to tell", ci_low=None, ci_high=None)
    found = judged(claim(expectation(pair=PAIR, effect="not slower", published=9.0)), made)
    assert (found.answer, found.reason) == ("inconclusive", "3 rounds are too few to tell")
    assert found.findings[0].is_open


OTHER = replace(version_pair(case(size="control")), margin=0.25)


def with_control(effect: str, control: str, *, ours: bool):
    """Judge a claim whose effect has a verdict, and whose control shows the effect or does not."""
    said = claim(
        expectation(pair=PAIR, effect="slower", published=None),
        expectation(pair=OTHER, effect="not slower", published=None, ours=ours),
    )
    low = {"shown": 1.5, "not shown": 0.95}[control]
    made = comparison(OTHER, low * 1.05, "inconclusive", ci_low=low, ci_high=low * 1.1)
    return judged(said, comparison(PAIR, 4.0, effect, "" if effect != "inconclusive" else "noisy"), made)


def test_a_control_of_ours_refutes_nothing_and_confirms_nothing():
    found = with_control("slower", "shown", ours=True)
    assert found.answer == "inconclusive"
    assert found.reason == "its control shows the effect as well: 2.0.0 v 1.0.0, power[size=control]"
    assert with_control("slower", "not shown", ours=True).answer == "reproduced"
    assert with_control("inconclusive", "shown", ours=True).answer == "inconclusive"


def test_what_fails_besides_a_control_of_ours_gives_the_reason():
    found = with_control("faster", "shown", ours=True)
    assert (found.answer, found.reason) == ("not reproduced", "it is the other way round")


def test_a_control_of_the_source_refutes_it():
    found = with_control("slower", "shown", ours=False)
    assert (found.answer, found.reason) == ("not reproduced", "the control shows the effect as well")


@pytest.mark.parametrize(
    ("step", "whole", "answer"),
    [
        ((0.04, 0.05), (0.03, 0.035), "reproduced"),
        ((0.80, 0.90), (0.03, 0.04), "not reproduced"),
        ((0.15, 0.25), (0.03, 0.04), "inconclusive"),
        ((4.0, 5.0), (6.0, 7.0), "reproduced"),
        ((0.4, 0.5), (6.0, 7.0), "not reproduced"),
        ((0.5, 0.6), (0.9, 1.1), "inconclusive"),
    ],
)
def test_a_part_is_judged_on_the_log_scale_by_the_ends_of_both_intervals(step, whole, answer):
    pairs = tuple(case_pair(case(style="eager"), case(style=name)) for name in ("function", "jit"))
    made = [
        comparison(pair, math.sqrt(low * high), "faster", ci_low=low, ci_high=high)
        for pair, (low, high) in zip(pairs, (step, whole), strict=True)
    ]
    found = judged(claim(parts=(Part(step=pairs[0], whole=pairs[1], at_least=0.5),)), *made)
    assert (found.answer, bool(found.reason)) == (answer, answer != "reproduced")


def test_a_part_without_an_interval_is_open():
    pairs = tuple(case_pair(case(style="eager"), case(style=name)) for name in ("function", "jit"))
    made = [comparison(pair, 0.1, "inconclusive", "noisy", ci_low=None, ci_high=None) for pair in pairs]
    found = judged(claim(parts=(Part(step=pairs[0], whole=pairs[1], at_least=0.5),)), *made)
    assert (found.answer, found.reason) == ("inconclusive", "noisy")
    assert found.findings[0].is_open


def test_a_first_call_is_compared_with_later_ones():
    bound = Bound(arm=ArmKey(CASE.label, target(NEW)), metric="first_over_time", at_least=2.0, at_most=None)
    slow = arm(CASE, NEW, time=1.0, first=100.0, steps=2)
    found = judged(claim(bounds=(bound,)), arms=(slow,))
    assert (found.answer, found.headline.ratio) == ("reproduced", pytest.approx(50.0))
    assert judged(claim(bounds=(bound,)), arms=(change_arm(slow, first=3.0),)).answer == "not reproduced"
    assert judged(claim(bounds=(bound,)), arms=(change_arm(slow, first=None),)).answer == "inconclusive"


CASES = [case(size=str(number)) for number in range(5)]
PAIRS = tuple(version_pair(one) for one in CASES)


def of_set(ratios: list[float], verdicts: list[str], wide: float = 1.05, *, shared: bool = True, **kind: object):
    together = CaseSet(**({"pairs": PAIRS, "mean_within": None, "more_often": None} | kind))
    made = [
        comparison(pair, ratio, verdict, ci_low=ratio / wide, ci_high=ratio * wide)
        for pair, ratio, verdict in zip(PAIRS, ratios, verdicts, strict=True)
    ]
    ratio = math.exp(sum(map(math.log, ratios)) / len(ratios))
    found = mean(NEW, ratio, ci_low=ratio / wide, ci_high=ratio * wide, cases=len(ratios))
    return judged(claim(sets=(together,)), *made, set_means={together: found} if shared else {})


@pytest.mark.parametrize(
    ("ratios", "wide", "answer"),
    [
        ([2.0, 0.5, 1.2, 1.0, 1.0], 1.05, "reproduced"),
        ([2.0, 0.5, 1.2, 1.0, 1.0], 1.3, "inconclusive"),
        ([2.0, 2.0, 1.5, 1.0, 1.4], 1.05, "not reproduced"),
        ([0.5, 0.5, 0.7, 1.0, 0.6], 1.05, "not reproduced"),
    ],
)
def test_a_set_is_judged_by_the_interval_of_its_mean(ratios, wide, answer):
    found = of_set(ratios, ["inconclusive"] * 5, wide, mean_within=1.25)
    assert found.answer == answer
    ratio = math.exp(sum(map(math.log, ratios)) / 5)
    assert (found.headline.ratio, found.headline.ci_high) == pytest.approx((ratio, ratio * wide))


def test_a_set_without_common_rounds_is_open():
    found = of_set([1.0] * 5, ["same"] * 5, mean_within=1.25, shared=False)
    assert (found.answer, found.reason) == ("inconclusive", "its cases share too few rounds")


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        (["slower", "slower", "slower", "faster", "same"], "reproduced"),
        (["slower", "slower", "slower", "faster", "inconclusive"], "reproduced"),
        (["slower", "slower", "faster", "inconclusive", "same"], "inconclusive"),
        (["slower", "faster", "faster", "same", "same"], "not reproduced"),
        (["slower", "faster", "same", "same", "same"], "not reproduced"),
    ],
)
def test_more_often_counts_the_open_cases_against_itself(verdicts: list[str], answer: str):
    assert of_set([1.0] * 5, verdicts, more_often="slower").answer == answer
    swapped = {"slower": "faster", "faster": "slower"}
    assert of_set([1.0] * 5, [swapped.get(one, one) for one in verdicts], more_often="faster").answer == answer


def test_a_set_needs_all_of_its_cases():
    said = claim(sets=(CaseSet(pairs=PAIRS[:2], mean_within=1.25, more_often=None),))
    made = [comparison(PAIRS[0], 1.0, "same"), comparison(PAIRS[1], None, "inconclusive", "killed by SIGKILL")]
    found = judged(said, *(replace(one, ci_low=one.ratio, ci_high=one.ratio) for one in made))
    assert (found.answer, found.reason) == ("inconclusive", "1 of 2 cases have no interval: killed by SIGKILL")


@pytest.mark.parametrize(
    ("metric", "limits", "answer"),
    [
        ("traces_per_call", {"at_least": 0.9}, "reproduced"),
        ("traces_per_call", {"at_most": 0.05}, "not reproduced"),
        ("traces", {"at_least": 50.0}, "not reproduced"),
        ("memory_mb", {"at_most": 300.0}, "reproduced"),
        ("import_s", {"at_least": 4.0}, "not reproduced"),
        ("time_s", {"at_most": 0.02}, "reproduced"),
        ("first_s", {"at_least": 0.04}, "reproduced"),
    ],
)
def test_a_figure_of_one_arm_is_held_against_its_limit(metric: str, limits: dict[str, float], answer: str):
    figures = {"traces_per_call": 1.0, "traces": 40, "memory": 200 * 2.0**20, "import": 3000.0, "first": 50.0}
    made = arm(CASE, NEW, rounds=4, **figures)
    said = claim(
        bounds=(
            Bound(arm=ArmKey(CASE.label, target(NEW)), metric=metric, **({"at_least": None, "at_most": None} | limits)),
        )
    )
    assert judged(said, arms=(arm(CASE, OLD), made)).answer == answer


def test_counts_need_one_round_and_times_need_as_many_as_an_interval():
    def bounded(metric: str):
        said = claim(bounds=(Bound(arm=ArmKey(CASE.label, target(NEW)), metric=metric, at_least=0.001, at_most=None),))
        made = arm(CASE, NEW, rounds=1, **{"traces_per_call": 1.0, "import": 3000.0})
        [finding] = judged(said, arms=(arm(CASE, OLD), made)).findings
        return finding.answer, finding.is_open

    assert bounded("traces_per_call") == ("reproduced", False)
    assert bounded("import_s") == ("inconclusive", True)


def test_a_worker_that_does_not_count_calls_leaves_the_claim_open():
    said = claim(
        bounds=(Bound(arm=ArmKey(CASE.label, target(NEW)), metric="traces_per_call", at_least=0.9, at_most=None),)
    )
    assert judged(said, arms=(arm(CASE, OLD), arm(CASE, NEW))).reason == "its worker did not say"


@pytest.mark.parametrize(
    ("shares", "answer"),
    [
        ({"_process_inputs": 0.5}, "reproduced"),
        ({"_process_inputs": 0.3}, "not reproduced"),
        ({}, "inconclusive"),
    ],
)
def test_half_of_a_published_share_has_to_be_seen(shares: dict[str, float], answer: str):
    key = ArmKey(CASE.label, target(NEW))
    said = claim(shares=(Share(arm=key, function="_process_inputs", published=0.81),))
    profiled = Shares(case=CASE.label, target=target(NEW), shares=shares, reason="" if shares else "it timed out")
    found = judged(said, arms=(arm(CASE, OLD), arm(CASE, NEW)), shares={key: profiled})
    assert found.answer == answer
    assert found.reason == {"reproduced": "", "not reproduced": "it takes a smaller share"}.get(answer, "it timed out")
    assert not found.findings[0].is_open


RETURNS = Returns(case=CASE, baseline=target(OLD), candidate=target(NEW), expected="equal")


@pytest.mark.parametrize(
    ("expected", "verdict", "answer", "reason"),
    [
        ("equal", "equal", "reproduced", ""),
        ("equal", "equal within tolerance", "reproduced", ""),
        ("equal", "differs", "not reproduced", "the results differ"),
        ("equal", "not comparable", "inconclusive", "random"),
        ("differs", "differs", "reproduced", ""),
        ("differs", "equal within tolerance", "not reproduced", "the results are equal"),
        ("differs", "not comparable", "inconclusive", "random"),
    ],
)
def test_what_two_versions_return_is_expected_to_be_equal_or_not(expected, verdict, answer, reason):
    returns = replace(RETURNS, expected=expected)
    output = OutputComparison(
        case=CASE, baseline=target(OLD), candidate=target(NEW), verdict=verdict,
        reason="random" if verdict == "not comparable" else "",
    )  # fmt: skip
    found = judged(claim(returns=(returns,)), arms=(arm(CASE, OLD), arm(CASE, NEW)), outputs=(output,))
    assert (found.answer, found.reason) == (answer, reason)
    assert not found.findings[0].is_open


def test_results_of_which_one_is_missing_say_nothing_of_a_claim():
    died = unmeasured(CASE, NEW, "died", "killed by SIGKILL")
    assert judged(claim(returns=(RETURNS,)), arms=(arm(CASE, OLD), died)).reason == "killed by SIGKILL"
    found = judged(claim(returns=(RETURNS,)), arms=(arm(CASE, OLD), arm(CASE, NEW)))
    assert (found.answer, found.reason) == ("inconclusive", "the run ended before both had returned something")
