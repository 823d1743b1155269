"""Calls over time, summed up stream by stream."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from orchestrator.reports.html.calls import MOST_POINTS, Calls, Course
from orchestrator.results.streams import read_stream
from tests.support.builders import MS, NEW, OLD, Row, case, rows, write_stream

OF = case(style="eager")


def course(streams: Iterable[Sequence[list[Row]]], folder: Path, counted: Iterable[int] = range(100)) -> Course:
    """Of the one arm in these streams."""
    calls = Calls()
    for place, batches in enumerate(streams):
        calls.add(read_stream(write_stream(folder / f"{place}.arrow", batches))[0])
    found = calls.courses(counted)
    assert list(found) == [(OF.label, NEW)]
    return found[OF.label, NEW]


def replicate(number: int, bursts: Sequence[int], **changes) -> list[Row]:
    return rows(OF, NEW, replicate=number, bursts=bursts, **changes)


def test_each_call_is_the_median_over_replicates_of_its_share_of_their_own_median(tmp_path: Path):
    slow_and_quick = [replicate(1, [90 * MS, 100 * MS, 110 * MS]), replicate(2, [9 * MS, 10 * MS, 11 * MS])]
    found = course([slow_and_quick], tmp_path)
    assert found.middle == pytest.approx((0.9, 1.0, 1.1))
    assert found.low == pytest.approx(found.high)
    assert (found.calls, found.width, found.replicates) == (3, 1, 2)


def test_the_band_spans_the_quartiles(tmp_path: Path):
    batches = [replicate(number, [10 * MS, 10 * MS, (10 + number) * MS]) for number in range(5)]
    found = course([batches], tmp_path)
    assert (found.low[2], found.high[2]) == pytest.approx((1.1, 1.3))
    assert found.middle[2] == pytest.approx(1.2)


def test_times_are_by_the_step_and_in_the_order_of_the_calls(tmp_path: Path):
    shuffled = list(reversed(replicate(1, [10 * MS, 20 * MS, 30 * MS], steps=10)))
    assert course([[shuffled]], tmp_path).middle == pytest.approx((0.5, 1.0, 1.5))


def test_neither_the_pilot_nor_what_does_not_count_takes_part(tmp_path: Path):
    batches = [
        replicate(1, [10 * MS] * 4),
        replicate(2, [10 * MS, 10 * MS, 10 * MS, 90 * MS]),
        replicate(3, [10 * MS] * 50, round=0),
    ]
    found = course([batches], tmp_path, counted=[1, 3])
    assert found.middle == pytest.approx((1.0,) * 4)
    assert found.replicates == 1


def test_many_calls_are_summed_up_by_medians_of_neighbours(tmp_path: Path):
    rising = [MS * (1000 + call) for call in range(1000)]
    found = course([[replicate(1, rising)]], tmp_path)
    assert found.width == 16
    assert len(found.middle) == 63 <= MOST_POINTS
    assert found.middle[0] == pytest.approx(1007.5 / 1499.5)
    assert list(found.middle) == sorted(found.middle)


def test_replicates_of_unequal_length_are_all_there_as_far_as_they_go(tmp_path: Path):
    found = course([[replicate(1, [10 * MS] * 2), replicate(2, [10 * MS] * 5)]], tmp_path)
    assert found.middle == pytest.approx((1.0,) * 5)
    assert found.calls == 5


def test_a_restarted_worker_s_streams_are_brought_to_the_same_width(tmp_path: Path):
    level, rising = [10 * MS] * 40, [MS * (1000 + call) for call in range(500)]
    found = course([[replicate(1, level)], [replicate(2, rising)]], tmp_path, counted=[1, 2])
    assert (found.width, found.calls, found.replicates) == (8, 500, 2)
    assert len(found.middle) == 63
    assert found.high[0] <= 1.0
    assert found.middle[62] > 1.15


def test_arms_of_several_cases_and_versions_are_kept_apart(tmp_path: Path):
    other = case(style="function")
    calls = Calls()
    for version, number in ((OLD, 1), (NEW, 11)):
        batches = [
            rows(of, version, replicate=number + place, bursts=[MS * (10 + place * call) for call in range(3)])
            for place, of in enumerate((OF, other))
        ]
        calls.add(read_stream(write_stream(tmp_path / f"{version}.arrow", batches))[0])
    found = calls.courses(range(20))
    assert set(found) == {(of.label, version) for of in (OF, other) for version in (OLD, NEW)}
    assert found[OF.label, OLD].middle == pytest.approx((1.0,) * 3)
    assert found[other.label, NEW].middle == pytest.approx((10 / 11, 1.0, 12 / 11))


def test_a_stream_without_rows_is_nothing(tmp_path: Path):
    calls = Calls()
    calls.add(read_stream(write_stream(tmp_path / "0.arrow", []))[0])
    assert calls.courses([1]) == {}
