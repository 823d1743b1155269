"""A comparison is given up only if the rounds that are left would hardly decide it."""

import math
import random
from dataclasses import replace
from statistics import fmean, stdev

import pytest

from orchestrator.model import Comparison
from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.futility import LEAST_CHANCE, can_decide, find_smallest_shown
from orchestrator.stats.looks import Stretch, make_schedule
from orchestrator.stats.paired import quantile
from tests.support.builders import case, comparison, version_pair

LOOKS = (4, 6, 8, 10, 13, 16, 20)
RUNS = 2000


def open_comparison(ratio: float, spread: float, rounds: int) -> Comparison:
    return replace(comparison(version_pair(case()), ratio, "inconclusive"), spread=spread, rounds=rounds)


@pytest.mark.parametrize(
    ("ratio", "spread", "rounds", "ahead", "decides"),
    [
        # Twenty rounds of such noise show nothing below a third, and the estimate is far from that.
        (1.02, 0.4, 10, 10, False),
        (1.02, 0.4, 6, 2, False),
        # The estimate is nearly beyond the interval.
        (1.45, 0.4, 10, 10, True),
        # A quiet machine can still show that two arms are the same.
        (1.0, 0.04, 6, 14, True),
        # After few rounds, the estimate may still go anywhere.
        (1.02, 0.4, 4, 16, True),
    ],
)
def test_what_is_given_up_depends_on_noise_and_on_the_rounds_that_are_left(ratio, spread, rounds, ahead, decides):
    assert can_decide(open_comparison(ratio, spread, rounds), ahead, LOOKS, 0.05) is decides


def test_what_is_unknown_may_be_decided():
    assert can_decide(replace(open_comparison(1.0, 0.4, 10), spread=None), 10, LOOKS, 0.05)
    assert can_decide(replace(open_comparison(1.0, 0.4, 10), ratio=None), 10, LOOKS, 0.05)


@pytest.mark.parametrize("truth", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(("now", "end"), [(4, 8), (6, 10), (10, 20)])
def test_what_is_given_up_would_have_been_decided_in_few_runs(truth: float, now: int, end: int):
    """Equal arms, and arms that differ by a tenth and by a third, in rounds that scatter by 30 %."""
    draw = random.Random(f"{truth}/{now}")
    given_up = decided = 0
    limit = quantile(1 - make_schedule([Stretch(LOOKS, end)]).level(end, DIFFERENCE_ERROR) / 2, end - 1)
    for _ in range(RUNS):
        logs = [draw.gauss(truth, 0.3) for _ in range(end)]
        seen = open_comparison(math.exp(fmean(logs[:now])), stdev(logs[:now]), now)
        if not can_decide(seen, end - now, LOOKS, 0.05):
            given_up += 1
            decided += abs(fmean(logs)) > limit * stdev(logs) / math.sqrt(end)
    # What is lost is at most one verdict in a hundred runs, and of equal arms one in twenty of what is given up.
    assert decided <= 0.01 * RUNS
    if truth == 0.0:
        assert given_up > 0.05 * RUNS
        assert decided <= LEAST_CHANCE * given_up
    if truth == 0.3:
        assert given_up < 0.5 * RUNS


def test_the_smallest_difference_shrinks_with_the_rounds():
    seen = open_comparison(1.0, 0.3, 4)
    assert find_smallest_shown(seen, 16, LOOKS) < find_smallest_shown(seen, 2, LOOKS)
