"""Each form of a duration."""

from datetime import timedelta

import pytest

from orchestrator.terminal.durations import (
    format_budget,
    format_hours_minutes,
    format_minutes,
    format_minutes_seconds,
    format_time,
)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0.0000123, "0.0123 µs"), (0.0186, "18.6 µs"), (0.25, "250 µs"), (0.9994, "999 µs"), (1.0, "1.00 ms"),
        (5.414, "5.41 ms"), (99.96, "100 ms"), (123.4, "123 ms"), (1000.0, "1.00 s"), (1353.0, "1.35 s"),
        (59_900.0, "59.9 s"), (60_000.0, "1.00 min"), (120_000.0, "2.00 min"), (600_000.0, "10.0 min"),
        (3_600_000.0, "1.00 h"), (5_400_000.0, "1.50 h"), (400_000_000.0, "111 h"),
    ],
)  # fmt: skip
def test_a_time_has_three_figures_and_the_unit_that_fits(milliseconds: float, text: str):
    assert format_time(milliseconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0 s"), (0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3661, "61 min 1 s")]
)
def test_the_time_left_is_in_minutes_and_seconds(seconds: float, text: str):
    assert format_minutes_seconds(seconds) == text


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(seconds=20), "0 min"), (timedelta(minutes=59), "59 min"), (timedelta(minutes=61), "1 h 1 min"),
        (timedelta(days=-1), "0 min"),
    ],
)  # fmt: skip
def test_a_longer_time_is_in_hours_and_minutes(length: timedelta, text: str):
    assert format_hours_minutes(length) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0.1"), (30, "0.5"), (599, "10.0"), (600, "10"), (1234, "21"), (7200, "120")]
)
def test_an_estimate_is_in_minutes_with_one_decimal_below_ten(seconds: float, text: str):
    assert format_minutes(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "budget"),
    [(0.0, "10s"), (11.0, "20s"), (59.0, "1m"), (60.0, "1m"), (61.0, "2m"), (330.0, "6m"), (601.0, "15m"),
     (3601.0, "90m"), (1e9, "16666680m")],
)  # fmt: skip
def test_a_budget_is_rounded_up_to_a_figure_that_is_easy_to_type(seconds: float, budget: str):
    assert format_budget(seconds) == budget
