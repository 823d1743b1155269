"""From points to series: one value a night, cut where what is measured in became another."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.history.model import Key, Point
from orchestrator.history.series import all_series, differences, first_after, key_of
from tests.support.nights import FIRST, SURROUNDINGS, history


def one_series(points: list[Point], version: str = "2.0.0"):
    [found] = [series for key, series in all_series(points).items() if key.version == version]
    return found


def test_a_series_is_of_one_case_version_host_and_engine():
    points = [*history(3, 2), *history(3, 2, host="other")]
    found = all_series(points)
    assert len(found) == 2 * 2 * 3
    assert all(len(series.points) == 3 for series in found.values())
    assert {key_of(point) for point in points} == set(found)


def test_its_control_is_that_of_the_same_case_and_nights():
    points = history(4, 2)
    series = one_series([point for point in points if point.case == points[0].case])
    [segment] = series.segments
    assert [value.night for value in segment.control] == [value.night for value in segment.values]
    assert segment.control != segment.values
    assert series.key.control == Key(points[0].case, "1.14.0+control", "1.14.0", "cpu", "venv", "host")


def test_a_worker_that_was_not_recorded_begins_no_segment():
    points = history(6, 1, ["2.0.0"], control=False)
    workers = ["", "", "first", "first", "second", "second"]
    points = [
        replace(one, surroundings=replace(SURROUNDINGS, worker=worker))
        for one, worker in zip(points, workers, strict=True)
    ]
    first, second = one_series(points).segments
    assert (len(first.values), len(second.values)) == (4, 2)
    assert second.because == ("worker of tfcompare: first -> second",)


@pytest.mark.parametrize("what", ["image", "reference_image", "driver", "source"])
def test_another_image_driver_or_source_begins_a_segment(what: str):
    points = history(4, 1, ["2.0.0"], control=False)
    points[2:] = [replace(one, surroundings=replace(SURROUNDINGS, **{what: "other"})) for one in points[2:]]
    first, second = one_series(points).segments
    assert [len(first.values), len(second.values)] == [2, 2]
    assert first.because == ()
    [because] = second.because
    assert because.endswith("-> other")


@pytest.mark.parametrize("what", ["kernel", "python", "machine", "tool"])
def test_other_surroundings_are_told_and_cut_nothing(what: str):
    points = history(4, 1, ["2.0.0"], control=False)
    points[2:] = [replace(one, surroundings=replace(SURROUNDINGS, **{what: "other"})) for one in points[2:]]
    series = one_series(points)
    assert len(series.segments) == 1
    between = first_after(series.points, FIRST + timedelta(days=2))
    assert between is not None
    assert [told.endswith("-> other") for told in differences(*between)] == [True]


def test_a_version_that_is_another_build_every_night_stays_one_segment():
    points = history(3, 1, ["nightly"], control=False)
    points = [
        replace(one, build=f"2.23.0.dev2024010{n}", surroundings=replace(SURROUNDINGS, image=f"image-{n}"))
        for n, one in enumerate(points)
    ]
    series = one_series(points, "nightly")
    assert len(series.segments) == 1
    told = differences(*points[:2])
    assert told[0] == "nightly: 2.23.0.dev20240100 -> 2.23.0.dev20240101"
    assert any("image-0 -> image-1" in one for one in told)


def test_two_screens_of_a_night_are_one_value_by_their_rounds():
    [point] = history(1, 1, ["2.0.0"], control=False)
    first = replace(point, effect=0.10, error=0.02, rounds=10)
    second = replace(point, run="another", effect=0.04, error=0.01, rounds=30)
    [value] = one_series([first, second]).values
    assert value.rounds == 40
    assert value.effect == pytest.approx((0.10 * 10 + 0.04 * 30) / 40)
    # The spread of a round is pooled: 0.02 * sqrt(10) over 9 degrees of freedom, 0.01 * sqrt(30) over 29.
    spread = math.sqrt((0.02**2 * 10 * 9 + 0.01**2 * 30 * 29) / 38)
    assert value.error == pytest.approx(spread / math.sqrt(40))


def test_a_night_that_was_confirmed_is_what_its_fresh_rounds_say():
    [screen] = history(1, 1, ["2.0.0"], control=False)
    first, second = (replace(screen, stage="confirm", effect=effect, error=0.01, rounds=60) for effect in (0.04, 0.06))
    [once] = one_series([screen, first]).values
    assert (once.effect, once.rounds) == (pytest.approx(0.04), 60)
    [twice] = one_series([screen, first, second]).values
    assert (twice.effect, twice.rounds) == (pytest.approx(0.05), 120)


@pytest.mark.parametrize("nights", [1, 2, 3])
def test_short_series_are_series(nights: int):
    assert len(one_series(history(nights, 1, ["2.0.0"])).values) == nights


def test_nights_without_a_time_are_points_and_no_values():
    points = history(3, 1, ["2.0.0"], control=False)
    points[1] = replace(points[1], outcome="died", reason="killed", effect=None, error=None, rounds=0)
    series = one_series(points)
    assert len(series.points) == 3
    assert len(series.values) == 2


def test_a_series_without_any_time_has_no_segment():
    points = [replace(one, outcome="died", effect=None) for one in history(2, 1, ["2.0.0"], control=False)]
    assert one_series(points).segments == ()


def test_one_round_alone_is_no_value():
    [point] = history(1, 1, ["2.0.0"], control=False)
    series = one_series([replace(point, rounds=1)])
    assert series.segments == ()
    assert len(series.points) == 1
