"""The verdicts on ten thousand replays of rounds that a real machine gave, with a known slowdown added.

The rounds are those of arms that do not differ, recorded by `make bench ARGS=detect`. A replay draws pairs of
neighbouring rounds, a forth and a back, from one recorded run and judges them look by look. Each arm is centred on its
own mean, for in a world made of these rounds the true ratio is that of the means. Shares are held against their exact
bounds; the draws are fixed.
"""

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pytest
from scipy import stats

from orchestrator.model import Contrast
from orchestrator.stats.contrasts import compare
from tests.support.builders import NEW, OLD, arm, case, plan

RECORDED = Path(__file__).resolve().parents[3] / "bench" / "recorded.json"
CASE = case()
PLAN = plan([CASE])
ARMS = [arm(CASE, OLD), arm(CASE, NEW)]
REPLAYS = 10_000
SEED = 7


@dataclass(frozen=True)
class Replayed:
    slowdown: float
    contrast: Contrast

    @property
    def covered(self) -> bool:
        assert self.contrast.ci_low is not None
        assert self.contrast.ci_high is not None
        return self.contrast.ci_low <= 1 + self.slowdown <= self.contrast.ci_high


def replay(draw: random.Random, runs: list[list[list[float]]], slowdown: float) -> Replayed:
    baseline, candidate = draw.sample(draw.choice(runs), 2)
    starts = [2 * draw.randrange(len(baseline) // 2) for _ in range(PLAN.looks[-1] // 2)]
    rounds = [start + step for start in starts for step in (0, 1)]
    for look in PLAN.looks:
        drawn = dict(enumerate(rounds[:look], 1))
        samples = {
            (CASE.label, OLD, "steady"): {number: baseline[place] for number, place in drawn.items()},
            (CASE.label, NEW, "steady"): {
                number: candidate[place] + math.log1p(slowdown) for number, place in drawn.items()
            },
        }
        (contrast,) = compare(PLAN, samples, ARMS)
        if contrast.verdict != "inconclusive":
            break
    return Replayed(slowdown, contrast)


def centred(values: list[float]) -> list[float]:
    return [value - fmean(values) for value in values]


def replays(slowdown: float, count: int) -> list[Replayed]:
    runs = [[centred(arm) for arm in run["arms"]] for run in json.loads(RECORDED.read_text())]
    draw = random.Random(SEED)
    return [replay(draw, runs, slowdown) for _ in range(count)]


def bounds(found: list[Replayed], *verdicts: str) -> tuple[float, float]:
    """The exact 95 % interval of the share of these verdicts."""
    count = sum(one.contrast.verdict in verdicts for one in found)
    interval = stats.binomtest(count, len(found)).proportion_ci(method="exact")
    return interval.low, interval.high


@pytest.fixture(scope="module")
def alike() -> list[Replayed]:
    return replays(0.0, REPLAYS)


@pytest.fixture(scope="module")
def at_the_margin() -> list[Replayed]:
    return replays(0.05, REPLAYS // 4)


@pytest.fixture(scope="module")
def beyond() -> list[Replayed]:
    return replays(0.10, REPLAYS // 4)


def test_arms_that_do_not_differ_are_told_apart_in_at_most_one_of_forty(alike: list[Replayed]) -> None:
    assert bounds(alike, "slower", "faster")[1] <= 0.025


def test_a_slowdown_of_the_margin_is_hardly_ever_called_the_same(at_the_margin: list[Replayed]) -> None:
    assert bounds(at_the_margin, "same")[1] <= 0.05


def test_what_is_slower_is_never_called_faster(at_the_margin: list[Replayed], beyond: list[Replayed]) -> None:
    assert bounds([*at_the_margin, *beyond], "faster")[0] == 0.0


def test_twice_the_margin_is_found_and_never_the_same(beyond: list[Replayed]) -> None:
    assert bounds(beyond, "slower")[0] >= 0.95
    assert bounds(beyond, "same")[1] <= 0.005


def test_the_interval_holds_the_truth_at_whichever_look_it_stops(
    alike: list[Replayed], at_the_margin: list[Replayed], beyond: list[Replayed]
) -> None:
    for found in (alike, at_the_margin, beyond):
        held = sum(one.covered for one in found)
        assert stats.binomtest(held, len(found)).proportion_ci(method="exact").low >= 0.95
