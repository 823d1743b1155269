"""A drift is told where replicates agree on it and it is worth a word; a single odd replicate is none."""

import math

import numpy as np

from orchestrator.stats.drift import LEAST_RISE, drift, drift_of_ratio


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
