"""A drift is told where replicates agree on it and it is worth a word; a single odd replicate is none."""

import math

import numpy as np
import pytest

from orchestrator.stats.drift import LEAST_RISE, autocorrelation, drift, drift_of_ratio


def rises(mean: float, spread: float, count: int = 10) -> list[float]:
    return list(mean + np.random.default_rng(2).normal(0, spread, count))


def test_a_rise_that_all_replicates_show_is_a_drift() -> None:
    found = drift(rises(0.10, 0.01))
    assert found is not None
    assert abs(found.rise - 0.10) < 0.02
    assert str(found).startswith("no steady state: later calls take +1")


def test_calls_that_get_faster_drift_too() -> None:
    found = drift(rises(-0.10, 0.01))
    assert found is not None
    assert found.rise < 0


def test_noise_is_no_drift() -> None:
    assert drift(rises(0.0, 0.05)) is None


def test_a_certain_but_tiny_rise_is_not_worth_a_word() -> None:
    assert drift(rises(LEAST_RISE / 2, 1e-4)) is None
    assert drift(rises(LEAST_RISE * 2, 1e-4)) is not None


def test_three_replicates_are_too_few() -> None:
    assert drift([0.5, 0.5, 0.5]) is None


def test_one_odd_replicate_is_no_drift() -> None:
    assert drift([0.0, 0.001, -0.001, 0.0, math.log(2)]) is None


def test_four_replicates_are_enough() -> None:
    assert drift([0.1, 0.1, 0.1, 0.1]) is not None
    same = dict.fromkeys(range(4), 0.0)
    assert drift_of_ratio(same, dict.fromkeys(same, 0.1)) is not None
    assert drift_of_ratio(same, dict.fromkeys(range(3), 0.1)) is None


def reference(series: np.ndarray) -> tuple[float, int]:
    """The sum of the lag-1 correlations of one series with its bias added back, and the steps in it."""
    centred = series - series.mean()
    return float(centred[1:] @ centred[:-1] / np.mean(centred**2)) + 1, len(series) - 1


def test_how_rounds_follow_each_other_is_pooled_over_comparisons_by_their_steps() -> None:
    draw = np.random.default_rng(3)
    many = [draw.normal(5, 2, count) for count in (6, 9, 20)]
    sums = [reference(series) for series in many]
    steps = sum(count for _, count in sums)
    expected = sum(total for total, _ in sums) / steps
    found = autocorrelation([list(series) for series in many])
    assert found == (pytest.approx(expected), steps)
    # Those of too few rounds, and those that never move, are left out wherever they stand.
    useless: list[list[float]] = [[1.0, 2.0, 1.0, 2.0, 1.0], [3.0] * 8]
    assert autocorrelation([*useless, *(list(series) for series in many), *useless]) == found
    assert autocorrelation(useless) == (0.0, 0)
