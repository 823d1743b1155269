"""The mean of several cases: it is what their rounds say, and its interval holds whether they err together or not."""

import math
from statistics import fmean

import numpy as np
import pytest

from orchestrator.plan.pairs import TABLE_LOOKS
from orchestrator.stats.comparisons import average_cases, judge_pairs
from orchestrator.stats.looks import LookSchedule, Stretch, make_schedule
from tests.support.builders import NEW, OLD, arm, case, plan, target, version_pair

CASES = tuple(case(size=str(number)) for number in range(6))
PAIRS = tuple(map(version_pair, CASES))
LOOKS = (4, 6, 8, 10, 13, 16, 20)
ALPHA = 0.05
NOISE, RUNS = 0.05, 600
# Four standard errors of a share of 5 % in so many runs.
CHANCE = 4 * math.sqrt(ALPHA * (1 - ALPHA) / RUNS)


def sampled(rounds_of: list[list[float]]) -> dict[tuple[str, object, str], dict[int, float]]:
    """Samples of cases whose log ratios in each round are these."""
    samples = {}
    for of, logs in zip(CASES, rounds_of, strict=False):
        samples[of.label, target(OLD), "time"] = dict.fromkeys(range(1, len(logs) + 1), 0.0)
        samples[of.label, target(NEW), "time"] = dict(enumerate(logs, 1))
    return samples


def test_it_is_the_mean_over_cases_of_each_round_from_the_rounds_that_all_have():
    schedule = make_schedule([Stretch((4,))])
    logs = [[0.1, 0.3, 0.1, 0.3, 9.0], [0.3, 0.1, 0.3, 0.1]]
    mean = average_cases(sampled(logs), PAIRS[:2], [schedule], ALPHA)
    assert mean
    # The fifth round is of one case alone, and what one case gains in a round the other loses.
    assert (mean.ratio, mean.ci_low, mean.ci_high) == pytest.approx((math.exp(0.2),) * 3)
    assert (mean.cases, mean.rounds, mean.metric, mean.candidate) == (2, 4, "time", NEW)
    assert average_cases(sampled([logs[0], logs[1][:3]]), PAIRS[:2], [schedule], ALPHA) is None
    assert average_cases(sampled(logs[:1]), PAIRS[:2], [schedule], ALPHA) is None


@pytest.mark.slow
@pytest.mark.parametrize("truths", [(0.0,) * 6, (0.0, 0.05, 0.4, 1.5, -0.3, -0.02)], ids=["equal", "different"])
@pytest.mark.parametrize(("correlation", "narrower"), [(0.0, 2.0), (0.95, 1.0)], ids=["none", "strong"])
def test_its_interval_holds_and_is_narrower_than_the_mean_of_the_ends(
    truths: tuple[float, ...], correlation: float, narrower: float
):
    """Cases stop one by one as they are decided, so the rounds that all have end where the first one stopped."""
    asked, schedule = plan(CASES, looks=LOOKS), make_schedule([Stretch(LOOKS)])
    arms = [arm(of, version) for of in CASES for version in (OLD, NEW)]
    random = np.random.default_rng(7)
    truth, missed, widths = fmean(truths), 0, []
    for number in range(RUNS):
        shared = random.normal(size=(1, LOOKS[-1])) * math.sqrt(correlation)
        own = random.normal(size=(len(CASES), LOOKS[-1])) * math.sqrt(1 - correlation)
        logs = (np.array(truths)[:, None] + NOISE * (shared + own)).tolist()
        if number % 10 == 0:
            samples = sampled(logs)
            mean, comparisons = (
                average_cases(samples, PAIRS, [schedule], ALPHA),
                judge_pairs(asked, samples, arms, schedule),
            )
            ends = fmean(math.log(each.ci_high / each.ci_low) for each in comparisons)
            widths.append(ends / math.log(mean.ci_high / mean.ci_low))
        ended = [find_end(of_case, schedule) for of_case in logs]
        stopped = sampled([of_case[:end] for of_case, end in zip(logs, ended, strict=True)])
        mean = average_cases(stopped, PAIRS, [schedule], ALPHA)
        missed += not mean.ci_low <= math.exp(truth) <= mean.ci_high
    assert missed / RUNS <= ALPHA + CHANCE
    assert min(widths) > 1.0 or correlation
    assert fmean(widths) > narrower


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.95])
def test_of_three_rounds_it_is_as_wide_as_the_intervals_of_its_cases(correlation: float):
    """The rounds that cases share say next to nothing by themselves; one case has more of them and takes part too."""
    cases = tuple(case(size=str(number)) for number in range(12))
    pairs, truths = tuple(map(version_pair, cases)), np.linspace(-0.4, 0.8, 12)[:, None]
    asked, schedule = plan(cases, looks=TABLE_LOOKS), make_schedule([Stretch(TABLE_LOOKS)])
    random, missed = np.random.default_rng(11), 0
    for number in range(200):
        shared = random.normal(size=(1, 8)) * math.sqrt(correlation)
        own = random.normal(size=(12, 8)) * math.sqrt(1 - correlation)
        logs = (truths + NOISE * (shared + own)).tolist()
        samples = {}
        for place, (of, ratios) in enumerate(zip(cases, logs, strict=True)):
            measured = ratios if place == 0 else ratios[:3]
            samples[of.label, target(OLD), "time"] = dict.fromkeys(range(1, len(measured) + 1), 0.0)
            samples[of.label, target(NEW), "time"] = dict(enumerate(measured, 1))
        mean = average_cases(samples, pairs, [schedule], ALPHA)
        assert mean.rounds == 3
        missed += not mean.ci_low <= math.exp(float(truths.mean())) <= mean.ci_high
        if number == 0:
            comparisons = judge_pairs(
                asked, samples, [arm(of, version) for of in cases for version in (OLD, NEW)], schedule
            )
            ends = fmean(math.log(each.ci_high / each.ci_low) for each in comparisons)
            assert math.log(mean.ci_high / mean.ci_low) < 1.5 * ends
    assert missed / 200 <= ALPHA


def find_end(logs: list[float], schedule: LookSchedule) -> int:
    """Return the look at which a case of these rounds is decided, by a plain rule: its interval leaves out 1."""
    for look in LOOKS:
        alone = average_cases(sampled([logs[:look]]), PAIRS[:1], [schedule], ALPHA)
        if alone and not alone.ci_low <= 1.0 <= alone.ci_high:
            return look
    return LOOKS[-1]
