"""Describes what changed around a series between two points, and which of these changes begin a new segment."""

from collections.abc import Sequence
from datetime import date
from itertools import pairwise

from orchestrator.history.model import Point

# What begins a new segment, in words for users. A version that is followed by a name, such as `nightly`, is another
# build every night: that is what is watched.
CUTS = {
    "image": "image of the version",
    "reference_image": "image of the reference",
    "driver": "driver",
    "source": "source of the workload",
    "worker": "worker of tfcompare",
    "variables": "variables of the version",
    "reference_variables": "variables of the reference",
}
# Earlier releases did not record these, which is no change.
RECORDED_LATER = ("worker", "variables", "reference_variables")
NAMES = {**CUTS, "kernel": "kernel", "python": "Python", "machine": "CPU", "tool": "tfcompare"}


def cuts(before: Point, after: Point) -> tuple[str, ...]:
    """Return what changed between two points so that they cannot be compared; nothing if they can."""
    followed = after.version != after.build
    names = [name for name in CUTS if not (followed and name == "image")]
    return tuple(change for name in names if (change := _change(name, before, after)))


def differences(before: Point, after: Point) -> tuple[str, ...]:
    """Return everything that changed between two points, for users who look for a cause."""
    changes = [change for name in NAMES if (change := _change(name, before, after))]
    if before.build != after.build:
        changes.insert(0, f"{after.version}: {before.build} -> {after.build}")
    return tuple(changes)


def _change(name: str, before: Point, after: Point) -> str:
    was, now = (getattr(point.surroundings, name) for point in (before, after))
    if was == now or (name in RECORDED_LATER and not (was and now)):
        return ""
    if "variables" not in name:
        was, now = _short(was), _short(now)
    return f"{NAMES[name]}: {was} -> {now}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:19]}…"


def first_after(points: Sequence[Point], night: date) -> tuple[Point, Point] | None:
    """Return the last point before a night and the first point from then on."""
    timed = [point for point in points if point.has_value]
    return next(((before, after) for before, after in pairwise(timed) if before.night < night <= after.night), None)
