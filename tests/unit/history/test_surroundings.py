"""What changed around a series, and which of it begins a segment."""

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.history.surroundings import (
    CUTS,
    first_after,
    list_changes,
    machine_changes,
    weekday_change,
)
from tests.support.nights import FIRST, SURROUNDINGS, history, one_series


@pytest.mark.parametrize("what", ["variables", "reference_variables", "worker"])
def test_other_variables_or_another_worker_begin_a_segment(what: str):
    points = history(4, 1, ["2.0.0"], control=False)
    texts = ["none", "none", "TF_X=1 TF_Y=2", "TF_X=1 TF_Y=2"]
    points = [
        replace(one, surroundings=replace(SURROUNDINGS, **{what: text}))
        for one, text in zip(points, texts, strict=True)
    ]
    first, second = one_series(points).segments
    assert (len(first.values), len(second.values)) == (2, 2)
    assert second.because == (f"{CUTS[what]}: none -> TF_X=1 TF_Y=2",)


@pytest.mark.parametrize("what", ["image", "reference_image", "driver", "source", "settings"])
def test_another_image_driver_or_source_begins_a_segment(what: str):
    points = history(4, 1, ["2.0.0"], control=False)
    points[2:] = [replace(one, surroundings=replace(SURROUNDINGS, **{what: "other"})) for one in points[2:]]
    first, second = one_series(points).segments
    assert [len(first.values), len(second.values)] == [2, 2]
    assert first.because == ()
    [because] = second.because
    assert because.endswith("-> other")


@pytest.mark.parametrize("what", ["kernel", "python", "machine", "tool", "microcode", "governor"])
def test_other_surroundings_are_told_and_cut_nothing(what: str):
    points = history(4, 1, ["2.0.0"], control=False)
    recorded = replace(SURROUNDINGS, microcode="0x1", governor="performance")
    points[:2] = [replace(one, surroundings=recorded) for one in points[:2]]
    points[2:] = [replace(one, surroundings=replace(recorded, **{what: "other"})) for one in points[2:]]
    series = one_series(points)
    assert len(series.segments) == 1
    between = first_after(series.points, FIRST + timedelta(days=2))
    assert between is not None
    assert [told.endswith("-> other") for told in list_changes(*between)] == [True]


def test_a_version_that_is_another_build_every_night_stays_one_segment():
    points = history(3, 1, ["nightly"], control=False)
    points = [
        replace(one, build=f"2.23.0.dev2024010{n}", surroundings=replace(SURROUNDINGS, image=f"image-{n}"))
        for n, one in enumerate(points)
    ]
    series = one_series(points, "nightly")
    assert len(series.segments) == 1
    told = list_changes(*points[:2])
    assert told[0] == "nightly: 2.23.0.dev20240100 -> 2.23.0.dev20240101"
    assert any("image-0 -> image-1" in one for one in told)


BOOTS = ("2024-01-01 08:00 UTC 3f2a", "2024-01-03 06:30 UTC 9b1c", "2024-01-01 08:01 UTC 3f2a")


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (BOOTS[1], ("boot: 2024-01-01 08:00 UTC -> 2024-01-03 06:30 UTC",)),
        # The clock was set, and nothing was started.
        (BOOTS[2], ()),
        ("", ()),
    ],
)
def test_another_start_of_the_machine_is_told(now: str, told: tuple[str, ...]):
    before, after = history(2, 1, ["2.0.0"], control=False)
    started = [
        replace(one, surroundings=replace(SURROUNDINGS, boot=boot)) for one, boot in ((before, BOOTS[0]), (after, now))
    ]
    assert list_changes(*started) == machine_changes(*started) == told


@pytest.mark.parametrize(
    ("first", "told"),
    [(3, ()), (4, ("weekday: Friday -> Saturday",)), (5, ()), (6, ("weekday: Sunday -> Monday",))],
)
def test_a_weekend_that_begins_or_ends_is_told(first: int, told: tuple[str, ...]):
    """The first night of all is that of a Monday."""
    points = history(8, 1, ["2.0.0"], control=False)
    assert weekday_change(points[first], points[first + 1]) == told


SIX = " ".join(f"package-{number}==1.0" for number in range(6))


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("keras==3.8.0 numpy==2.1.3", "keras==3.8.0 numpy==2.1.3", ()),
        ("keras==3.8.0 six==1.0", "keras==3.9.0", ("packages: keras 3.8.0 -> 3.9.0, six 1.0 -> none",)),
        # The build is named anyway.
        ("tf-nightly==1.0", "tf-nightly==2.0", ()),
        ("", f"{SIX} keras==3.9.0", ("packages: 7 packages",)),
    ],
)
def test_the_packages_that_moved_are_named_if_they_are_few(before: str, now: str, told: tuple[str, ...]):
    first, second = history(2, 1, ["2.0.0"], control=False)
    first, second = (
        replace(one, surroundings=replace(SURROUNDINGS, packages=text))
        for one, text in ((first, before), (second, now))
    )
    assert list_changes(first, second) == told
