"""The verdicts on ten thousand replays of rounds that a real machine gave, with a known slowdown added.

The rounds are those of arms that do not differ, recorded by `make bench ARGS=detect`. A replay draws pairs of
neighbouring rounds, a forth and a back, from one recorded run and judges them look by look. Nothing is subtracted from
an arm: an offset between arms that do not differ is an error that verdicts should be seen to make. But replays that all
come from the same few rounds would take the mean of these rounds, which is mostly chance, for a difference that is
there. So which arm is the baseline is drawn anew for each pair of rounds: the true ratio is then exactly 1, and what
offset there was is part of the noise. An offset that lasted for a whole run is looked for in the runs as they were
measured, once in their windows of rounds and once in their means. Shares are held against their exact bounds; the draws
are fixed.
"""

import json
import math
import random
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import pytest
from scipy import stats

from orchestrator.plan.pairs import LOOKS
from orchestrator.stats.comparisons import judge_pairs
from tests.support.builders import NEW, OLD, arm, case, plan, target
from tests.support.judged_runs import JudgedRun

# Thousands of runs: not for the fast loop.
pytestmark = pytest.mark.slow

RECORDED = Path(__file__).resolve().parents[3] / "bench" / "recorded.json"
CASE = case()
PLAN = plan([CASE], looks=LOOKS)
ARMS = [arm(CASE, OLD), arm(CASE, NEW)]
REPLAYS = 10_000
SEED = 7


def judge_by_looks(baseline: list[float], candidate: list[float], slowdown: float) -> JudgedRun:
    for look in LOOKS:
        samples = {
            (CASE.label, target(OLD), "time"): dict(enumerate(baseline[:look], 1)),
            (CASE.label, target(NEW), "time"): {
                number: time + math.log1p(slowdown) for number, time in enumerate(candidate[:look], 1)
            },
        }
        (comparison,) = judge_pairs(PLAN, samples, ARMS)
        if comparison.verdict != "inconclusive":
            break
    return JudgedRun(slowdown, comparison)


def replay(draw: random.Random, runs: list[list[list[float]]], slowdown: float) -> JudgedRun:
    arms = draw.sample(draw.choice(runs), 2)
    drawn: tuple[list[float], list[float]] = ([], [])
    for _ in range(LOOKS[-1] // 2):
        first = 2 * draw.randrange(len(arms[0]) // 2)
        draw.shuffle(arms)
        for values, times in zip(drawn, arms, strict=True):
            values += times[first : first + 2]
    return judge_by_looks(*drawn, slowdown)


def recorded() -> list[list[list[float]]]:
    return [run["arms"] for run in json.loads(RECORDED.read_text())]


def replays(slowdown: float, count: int) -> list[JudgedRun]:
    runs, draw = recorded(), random.Random(SEED)
    return [replay(draw, runs, slowdown) for _ in range(count)]


def bounds(found: list[JudgedRun], *verdicts: str) -> tuple[float, float]:
    """The exact 95 % interval of the share of these verdicts."""
    count = sum(one.comparison.verdict in verdicts for one in found)
    interval = stats.binomtest(count, len(found)).proportion_ci(method="exact")
    return interval.low, interval.high


@pytest.fixture(scope="module")
def alike() -> list[JudgedRun]:
    return replays(0.0, REPLAYS)


@pytest.fixture(scope="module")
def at_the_margin() -> list[JudgedRun]:
    return replays(0.05, REPLAYS // 4)


@pytest.fixture(scope="module")
def beyond() -> list[JudgedRun]:
    return replays(0.10, REPLAYS // 4)


def test_arms_that_do_not_differ_are_told_apart_in_at_most_one_of_forty(alike: list[JudgedRun]) -> None:
    assert bounds(alike, "slower", "faster")[1] <= 0.025


def test_a_slowdown_of_the_margin_is_hardly_ever_called_the_same(at_the_margin: list[JudgedRun]) -> None:
    assert bounds(at_the_margin, "same")[1] <= 0.05


def test_what_is_slower_is_never_called_faster(at_the_margin: list[JudgedRun], beyond: list[JudgedRun]) -> None:
    assert bounds([*at_the_margin, *beyond], "faster")[0] == 0.0


def test_twice_the_margin_is_found_and_never_the_same(beyond: list[JudgedRun]) -> None:
    assert bounds(beyond, "slower")[0] >= 0.95
    assert bounds(beyond, "same")[1] <= 0.005


def test_the_interval_holds_the_truth_at_whichever_look_it_stops(
    alike: list[JudgedRun], at_the_margin: list[JudgedRun], beyond: list[JudgedRun]
) -> None:
    for found in (alike, at_the_margin, beyond):
        held = sum(one.covered for one in found)
        assert stats.binomtest(held, len(found)).proportion_ci(method="exact").low >= 0.95


def test_arms_that_do_not_differ_are_not_told_apart_in_the_rounds_as_they_were_measured() -> None:
    windows = [
        judge_by_looks(baseline[first : first + LOOKS[-1]], candidate[first : first + LOOKS[-1]], 0.0)
        for arms in recorded()
        for baseline, candidate in combinations(arms, 2)
        for first in range(0, len(baseline) - LOOKS[-1] + 1, LOOKS[-1])
    ]
    assert bounds(windows, "slower", "faster")[0] <= 0.025


def test_the_means_of_arms_that_do_not_differ_lie_no_further_apart_than_their_rounds_explain() -> None:
    # One pair a run, so that none is counted twice.
    apart = [[one - other for one, other in zip(*arms[:2], strict=True)] for arms in recorded()]
    squares = sum(fmean(rounds) ** 2 / (stdev(rounds) ** 2 / len(rounds)) for rounds in apart)
    assert stats.chi2.sf(squares, len(apart)) > 0.01
