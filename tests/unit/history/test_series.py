"""From points to series: one value a night, cut where what is measured in became another."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from orchestrator.history.model import Key, Point, Segment, Series, Value
from orchestrator.history.surroundings import cuts
from tests.support.nights import history, one_series, series_of
from tests.support.sites import everything


def test_a_series_is_of_one_case_version_host_and_engine():
    points = [*history(3, 2), *history(3, 2, host="other")]
    found = series_of(points)
    assert len(found) == 2 * 2 * 3
    assert all(len(series.points) == 3 for series in found.values())
    assert {point.key for point in points} == set(found)


def test_its_control_is_that_of_the_same_case_and_nights():
    points = history(4, 2)
    series = one_series([point for point in points if point.case == points[0].case])
    [segment] = series.segments
    assert [value.night for value in segment.control] == [value.night for value in segment.values]
    assert segment.control != segment.values
    assert series.key.control == Key.parse(points[0].case, "1.14.0+control", "1.14.0", "cpu", "venv", "host")


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


def test_an_effect_that_is_no_number_is_no_value():
    points = history(3, 1, ["2.0.0"], control=False)
    points[1] = replace(points[1], effect=math.nan)
    assert not points[1].has_value
    assert len(one_series(points).values) == 2


def test_series_are_what_a_loop_over_their_points_finds():
    found, expected = series_of(everything()), looped(everything())
    assert list(found) == list(expected)
    assert sum(len(series.segments) for series in expected.values()) > len(expected)
    for key, series in expected.items():
        assert found[key].points == series.points
        assert [segment.because for segment in found[key].segments] == [segment.because for segment in series.segments]
        for segment, other in zip(found[key].segments, series.segments, strict=True):
            assert list(map(rounded, segment.values)) == list(map(rounded, other.values))
            assert list(map(rounded, segment.control)) == list(map(rounded, other.control))


def rounded(value: Value) -> Value:
    return replace(value, effect=round(value.effect, 12), error=round(value.error, 12))


def looped(points: Iterable[Point]) -> dict[Key, Series]:
    """The same series, point by point."""
    by_key: dict[Key, list[Point]] = defaultdict(list)
    for point in points:
        by_key[point.key].append(point)
    found = {}
    for key, of_key in sorted(by_key.items()):
        control = looped_values(by_key.get(key.control, ()))
        parts: list[tuple[list[Point], tuple[str, ...]]] = []
        for point in (point for point in of_key if point.has_value):
            because = cuts(parts[-1][0][-1], point) if parts else ()
            if not parts or because:
                parts.append(([], because))
            parts[-1][0].append(point)
        segments = []
        for part, because in parts:
            nights = {point.night for point in part}
            beside = tuple(value for value in control if value.night in nights)
            segments.append(Segment(values=looped_values(part), control=beside, because=because))
        found[key] = Series(key=key, segments=tuple(segments), points=tuple(of_key))
    return found


def looped_values(points: Sequence[Point]) -> tuple[Value, ...]:
    timed = [point for point in points if point.has_value]
    found = []
    for night in sorted({point.night for point in timed}):
        of_night = [point for point in timed if point.night == night]
        counted = [point for point in of_night if point.stage == "confirm"] or of_night
        rounds = sum(point.rounds for point in counted)
        effect = sum(point.rounds * (point.effect or 0.0) for point in counted) / rounds
        squares = sum((point.error or 0.0) ** 2 * point.rounds * (point.rounds - 1) for point in counted)
        error = math.sqrt(squares / (rounds - len(counted)) / rounds)
        found.append(Value(night=night, effect=effect, error=error, rounds=rounds))
    return tuple(found)
