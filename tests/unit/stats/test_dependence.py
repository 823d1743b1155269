"""Rounds that depend on each other are found where they are, seldom where they are not, and widen intervals enough."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.stats.dependence import LEAST, MOST, Dependence, find_dependence
from orchestrator.stats.paired import Estimate

Floats = NDArray[np.float64]


def following(correlation: float, runs: int, rounds: int, seed: int = 1) -> Floats:
    """Rounds of which each resembles the one before it."""
    drawn = np.random.default_rng(seed).normal(size=(runs, rounds))
    for number in range(1, rounds):
        new = math.sqrt(1 - correlation**2) * drawn[:, number]
        drawn[:, number] = correlation * drawn[:, number - 1] + new
    return drawn


def moving(runs: int, rounds: int, reach: float) -> Floats:
    """Rounds whose ratio moves evenly from this far on one side to as far on the other."""
    return np.random.default_rng(2).normal(size=(runs, rounds)) + np.linspace(-reach, reach, rounds)


def found(rows: Iterable[Sequence[float]]) -> Dependence:
    return find_dependence(Estimate(tuple(row)) for row in rows)


@pytest.mark.parametrize("rounds", [4, 6, 10, 20])
@pytest.mark.parametrize("comparisons", [1, 3, 28])
def test_chance_looks_like_dependence_in_at_most_one_of_six_runs(rounds: int, comparisons: int) -> None:
    count = 600 // comparisons
    runs = following(0.0, count * comparisons, rounds).reshape(count, comparisons, rounds)
    assert sum(map(bool, map(found, runs.tolist()))) / count < 1 / 6


@pytest.mark.parametrize("correlation", [0.5, 0.8])
@pytest.mark.parametrize("rounds", [10, 20])
def test_many_comparisons_say_how_much_a_round_resembles_the_one_before_it(correlation: float, rounds: int) -> None:
    seen = [found(following(correlation, 28, rounds, seed).tolist()).correlation for seed in range(10)]
    # Rounds that are pulled in resemble each other a little less.
    assert 0.75 * correlation < np.mean(seen) < 1.1 * correlation


def test_one_comparison_shows_it_in_most_runs_of_twenty_rounds() -> None:
    assert np.mean([found([row]).correlation > 0 for row in following(0.8, 200, 20).tolist()]) > 0.9


@pytest.mark.parametrize("correlation", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("rounds", [4, 8, 20])
def test_an_interval_is_widened_to_what_the_mean_of_such_rounds_strays_by(correlation: float, rounds: int) -> None:
    runs = [Estimate(tuple(row)) for row in following(correlation, 1000, rounds).tolist()]
    strayed = np.std([run.theta for run in runs])
    widened = [Dependence(correlation).widen(run).standard_error for run in runs]
    assert math.sqrt(np.mean(np.square(widened))) == pytest.approx(strayed, rel=0.2)


def test_a_ratio_that_moves_is_seen_and_widens_an_interval_to_where_it_was() -> None:
    rows = moving(28, 10, 1.0)
    assert found(rows.tolist()).moves
    run = Estimate(tuple(moving(1, 20, 4.0)[0].tolist()))
    assert found([run.differences]).moves
    assert Dependence(moves=True).widen(run).standard_error == pytest.approx(4 / math.sqrt(3), rel=0.25)


def test_comparisons_that_stray_together_count_as_one() -> None:
    rows = following(0.0, 100, 8).tolist()
    assert [bool(found([row] * 28)) for row in rows] == [bool(found([row])) for row in rows]


def test_few_rounds_and_equal_rounds_say_nothing() -> None:
    nothing = [[1.0, 2.0, 3.0], [3.0] * 8]
    assert not found(nothing)
    rows = following(0.5, 5, 12).tolist()
    assert found([*nothing, *rows]) == found(rows) != Dependence()
    still = Estimate((3.0,) * 8)
    assert Dependence(moves=True).widen(still) == still


def test_the_rounds_farthest_out_are_pulled_in_first() -> None:
    rows = following(0.0, 1, 20, seed=3).tolist()
    assert not found(rows)
    rows[0][18:] = [50.0, 40.0]
    assert not found(rows)


def test_neither_opposed_rounds_nor_a_correlation_near_1_widen_without_limit() -> None:
    assert not found([[0.0, 1.0] * 10])
    assert LEAST <= found(np.cumsum(following(0.0, 28, 20), axis=1).tolist()).correlation <= MOST


def test_what_was_found_is_said_in_a_sentence() -> None:
    assert str(Dependence(0.62)) == "rounds resemble the rounds before them (correlation 0.62)"
    assert str(Dependence(0.62, moves=True)).endswith("(correlation 0.62) and ratios move during the run")
    assert str(Dependence(moves=True)) == "ratios move during the run"
