"""The analysis of variance behind `bench/workers`."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bench.workers import WANTED, Cell, Generation, expected_limit, find_fork_count
from orchestrator.stats.calibrate import Effort

WORKERS, FORKS, SPREAD = 12, 25, 0.03


def cells(between: float, count: int = 1500, generations: int = 1) -> list[Cell]:
    """Workers that differ by so much, in generations and rounds that differ by more."""
    draw = np.random.default_rng(18)
    return [
        Cell(
            "2.13",
            "body",
            draw.normal(0, 0.1, (generations, 1, 1))
            + draw.normal(0, between, (generations, WORKERS, 1))
            + draw.normal(0, 0.1, (generations, 1, FORKS))
            + draw.normal(0, SPREAD, (generations, WORKERS, FORKS)),
        )
        for _ in range(count)
    ]


def test_what_a_whole_round_has_in_common_changes_nothing():
    (cell,) = cells(0.01, 1)
    shifted = Cell(cell.version, cell.body, cell.times + np.linspace(0, 3, FORKS))
    assert shifted.f == pytest.approx(cell.f)
    assert shifted.spread == pytest.approx(cell.spread)


def test_two_workers_are_judged_as_by_a_paired_t_test():
    times = np.random.default_rng(1).normal(size=(2, 10))
    cell = Cell("2.13", "body", times[np.newaxis])
    test = stats.ttest_rel(*times)
    assert cell.f == pytest.approx(test.statistic**2)
    assert cell.p == pytest.approx(test.pvalue)


def test_workers_that_do_not_differ_are_called_different_in_one_of_twenty():
    ps = [cell.p for cell in cells(0.0)]
    bounds = stats.binomtest(sum(p < 0.05 for p in ps), len(ps)).proportion_ci(method="exact")
    assert bounds.low <= 0.05 <= bounds.high


def test_a_single_slow_fork_neither_makes_a_difference_nor_hides_one_from_ranks():
    (cell,) = cells(0.03, 1)
    times = cell.times.copy()
    times[0, 0, 0] += 5
    hit = Cell(cell.version, cell.body, times)
    assert cell.p < 0.001
    assert hit.p > 0.05
    assert hit.p_by_ranks < 0.001


@pytest.mark.parametrize(("between", "generations"), [(0.005, 1), (0.02, 1), (0.005, 3)])
def test_the_upper_limit_is_below_the_truth_in_one_of_twenty(between, generations):
    below = sum(cell.limit < between for cell in cells(between, generations=generations))
    bounds = stats.binomtest(below, 1500).proportion_ci(method="exact")
    assert bounds.low <= 0.05 <= bounds.high


@pytest.mark.parametrize("generations", [1, 3])
def test_the_expected_limit_is_that_of_workers_that_do_not_differ(generations):
    limits = [cell.limit for cell in cells(0.0, generations=generations)]
    assert np.mean(limits) == pytest.approx(expected_limit(SPREAD, WORKERS, FORKS, generations), rel=0.03)


def test_the_spread_of_workers_is_found_beyond_that_of_their_forks():
    assert np.mean([cell.tau for cell in cells(0.02)]) == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.06])
def test_as_many_forks_are_planned_as_reach_the_limit_that_is_wanted(spread):
    forks = find_fork_count(spread, WORKERS)
    assert expected_limit(spread, WORKERS, forks) <= WANTED < expected_limit(spread, WORKERS, max(2, forks * 3 // 4))


def test_a_short_first_run_tells_a_spread_that_is_hardly_ever_exceeded():
    first = [Cell(cell.version, cell.body, cell.times[:, :, :6]) for cell in cells(0.0)]
    exceeded = sum(cell.largest_spread < SPREAD for cell in first)
    bounds = stats.binomtest(exceeded, len(first)).proportion_ci(method="exact")
    assert bounds.low <= 0.1 <= bounds.high


def test_a_generation_is_read_as_it_was_written():
    kept = {"seconds": 12.5, "times": [[1.0, 2.0], [3.0, 4.0]], "efforts": {"worker01": [2, 8, 5]}}
    generation = Generation.load(json.loads(json.dumps(kept)))
    assert generation.efforts == {"worker01": Effort(2, 8, 5)}
    cell = Cell.of("2.13", "body", [generation, replace(generation, times=generation.times[:, :1])])
    assert cell.times.tolist() == [[[1.0], [3.0]], [[1.0], [3.0]]]
