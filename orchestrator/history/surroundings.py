"""Describes what changed around a series between two points, and which of these changes begin a new segment."""

from collections.abc import Collection, Sequence
from datetime import date
from itertools import pairwise

from orchestrator.catalog.targets import TENSORFLOWS
from orchestrator.history.model import Point
from orchestrator.results.differences import find_moved, name_moved

# A change in one of these begins a new segment; the values are words for users. The image of a version that is followed
# by a name, such as `nightly`, does not count: it has a new build every night, and these builds are what is watched.
CUTS = {
    "image": "image of the version",
    "reference_image": "image of the reference",
    "driver": "driver",
    "source": "source of the workload",
    "worker": "worker of tfcompare",
    "variables": "variables of the version",
    "reference_variables": "variables of the reference",
    "settings": "settings of the run",
}
BOOT = "boot"
# Not every machine shows these at all times; a value that is missing on one of two nights is no change.
OFTEN_HIDDEN = (BOOT, "microcode", "governor")
# These belong to the machine and not to TensorFlow, and move many series at once.
OF_MACHINE = {
    "kernel": "kernel",
    BOOT: "boot",
    "microcode": "microcode",
    "governor": "governor of the CPU's clock",
    "machine": "CPU",
}
NAMES = {**CUTS, **OF_MACHINE, "python": "Python", "tool": "tfcompare"}
SATURDAY = 5
# A gap of more days between two nights begins a new segment, since too much may have changed.
MOST_APART = 60


def cuts(before: Point, after: Point) -> tuple[str, ...]:
    """Return the changes because of which two points cannot be compared, or nothing if they can be."""
    followed = after.target != after.build
    names = [name for name in CUTS if not (followed and name == "image")]
    changes = [change for name in names if (change := _change(name, before, after))]
    apart = (after.night - before.night).days
    return (*changes, *([f"no night for {apart - 1} days"] if apart > MOST_APART else []))


def list_changes(before: Point, after: Point) -> tuple[str, ...]:
    """Return everything that changed between two points, for users who look for a cause."""
    changes = [change for name in NAMES if (change := _change(name, before, after))]
    if before.build != after.build:
        changes.insert(0, f"{after.target}: {before.build} -> {after.build}")
    moved = find_moved(*(_read_packages(point.surroundings.packages) for point in (before, after)))
    return (*changes, *([f"packages: {', '.join(name_moved(moved))}"] if moved else []))


def _read_packages(text: str) -> dict[str, str]:
    """Return the packages of a version, without TensorFlow, whose build is named anyway."""
    pairs = (word.partition("==") for word in text.split())
    return {name: number for name, _, number in pairs if name not in TENSORFLOWS}


def is_weekend(night: date) -> bool:
    return night.weekday() >= SATURDAY


def weekday_change(before: Point, after: Point) -> tuple[str, ...]:
    """Return a remark if a weekend began or ended between two points, since machines may have other work then."""
    if is_weekend(before.night) == is_weekend(after.night):
        return ()
    return (f"weekday: {before.night:%A} -> {after.night:%A}",)


def machine_changes(before: Point, after: Point, usual: Collection[str] = ()) -> tuple[str, ...]:
    """Return what changed about the machine between two points, without the names in `usual`."""
    return tuple(change for name in OF_MACHINE if name not in usual and (change := _change(name, before, after)))


def is_restarted(before: Point, after: Point) -> bool:
    """Return whether the machine was started between two points."""
    return bool(_change(BOOT, before, after))


def _change(name: str, before: Point, after: Point) -> str:
    was, now = (getattr(point.surroundings, name) for point in (before, after))
    if was == now or (name in OFTEN_HIDDEN and not (was and now)):
        return ""
    if name == BOOT:
        (was, _, was_id), (now, _, now_id) = was.rpartition(" "), now.rpartition(" ")
        # The machine was not restarted; only its clock was set.
        if was_id == now_id:
            return ""
    if name == "settings":
        was, now = was or "none", now or "none"
    if "variables" not in name:
        was, now = _short(was), _short(now)
    return f"{NAMES[name]}: {was} -> {now}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:19]}…"


def first_after(points: Sequence[Point], night: date) -> tuple[Point, Point] | None:
    """Return the last point before a night and the first point on or after it."""
    timed = [point for point in points if point.has_value]
    return next(((before, after) for before, after in pairwise(timed) if before.night < night <= after.night), None)
