"""What changed around a series, and which of it begins a segment."""

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.history.surroundings import CUTS, RECORDED_LATER, differences, first_after
from tests.support.nights import FIRST, SURROUNDINGS, history, one_series


@pytest.mark.parametrize("what", RECORDED_LATER)
def test_what_was_not_recorded_begins_no_segment(what: str):
    points = history(6, 1, ["2.0.0"], control=False)
    texts = ["", "", "none", "none", "TF_X=1 TF_Y=2", "TF_X=1 TF_Y=2"]
    points = [
        replace(one, surroundings=replace(SURROUNDINGS, **{what: text}))
        for one, text in zip(points, texts, strict=True)
    ]
    first, second = one_series(points).segments
    assert (len(first.values), len(second.values)) == (4, 2)
    assert second.because == (f"{CUTS[what]}: none -> TF_X=1 TF_Y=2",)


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
