"""Turns points into series: the nights of a case in a version, cut where the environment changed."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import pairwise

from orchestrator.history.model import Key, Point, Segment, Series, Value

# What begins a new segment, in the words of a person. A version that is followed by a name of its own is another build
# every night: that is what is watched.
CUTS = {
    "image": "image of the version",
    "reference_image": "image of the reference",
    "driver": "driver",
    "source": "source of the workload",
    "worker": "worker of tfcompare",
}
TOLD = {**CUTS, "kernel": "kernel", "python": "Python", "machine": "CPU", "tool": "tfcompare"}


def key_of(point: Point) -> Key:
    return Key(point.case, point.version, point.reference, point.device, point.engine, point.host)


def all_series(points: Iterable[Point]) -> dict[Key, Series]:
    """Return the series of points that are sorted oldest first."""
    by_key: dict[Key, list[Point]] = defaultdict(list)
    for point in points:
        by_key[key_of(point)].append(point)
    controls = {key: _values(of_key) for key, of_key in by_key.items() if key.is_control}
    return {key: _series(key, of_key, controls.get(key.control, ())) for key, of_key in sorted(by_key.items())}


def _series(key: Key, points: Sequence[Point], control: Sequence[Value]) -> Series:
    segments = []
    for chunk, because in _cut([point for point in points if has_value(point)]):
        nights = {point.night for point in chunk}
        beside = tuple(value for value in control if value.night in nights)
        segments.append(Segment(values=_values(chunk), control=beside, because=because))
    return Series(key=key, segments=tuple(segments), points=tuple(points))


def has_value(point: Point) -> bool:
    """Return whether a point has a value; a single round has no spread, and thus none."""
    return point.effect is not None and point.rounds > 1


def _cut(points: Sequence[Point]) -> list[tuple[list[Point], tuple[str, ...]]]:
    chunks: list[tuple[list[Point], tuple[str, ...]]] = []
    for point in points:
        because = cuts(chunks[-1][0][-1], point) if chunks else ()
        if not chunks or because:
            chunks.append(([], because))
        chunks[-1][0].append(point)
    return chunks


def cuts(before: Point, after: Point) -> tuple[str, ...]:
    """Return what changed between two points so that they cannot be compared; nothing if they can."""
    followed = after.version != after.build
    names = [name for name in CUTS if not (followed and name == "image")]
    return tuple(told for name in names if (told := _change(name, before, after)))


def differences(before: Point, after: Point) -> tuple[str, ...]:
    """Return everything that changed between two points, for users who look for a cause."""
    told = [told for name in TOLD if (told := _change(name, before, after))]
    if before.build != after.build:
        told.insert(0, f"{after.version}: {before.build} -> {after.build}")
    return tuple(told)


def _change(name: str, before: Point, after: Point) -> str:
    was, now = (getattr(point.surroundings, name) for point in (before, after))
    # Which worker measured was not recorded by earlier releases.
    if was == now or (name == "worker" and not (was and now)):
        return ""
    return f"{TOLD[name]}: {_short(was)} -> {_short(now)}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:19]}…"


def _values(points: Iterable[Point]) -> tuple[Value, ...]:
    by_night: dict[date, list[Point]] = defaultdict(list)
    for point in points:
        if has_value(point):
            by_night[point.night].append(point)
    return tuple(_value(night, _select_counted(of_night)) for night, of_night in sorted(by_night.items()))


def _select_counted(of_night: Sequence[Point]) -> Sequence[Point]:
    """Return the points that make up a night's value, all their rounds together.

    If the night was confirmed, only the new measurements count: its screen was selected because of its deviation.
    """
    return [point for point in of_night if point.stage == "confirm"] or of_night


def _value(night: date, points: Sequence[Point]) -> Value:
    rounds = sum(point.rounds for point in points)
    effect = sum(point.rounds * (point.effect or 0.0) for point in points) / rounds
    # The spread of a round, pooled over the parts of the night.
    squares = sum((point.error or 0.0) ** 2 * point.rounds * (point.rounds - 1) for point in points)
    freedom = rounds - len(points)
    return Value(night=night, effect=effect, error=math.sqrt(squares / freedom / rounds), rounds=rounds)


def first_after(points: Sequence[Point], night: date) -> tuple[Point, Point] | None:
    """Return the last point before a night and the first point from then on."""
    timed = [point for point in points if has_value(point)]
    return next(((before, after) for before, after in pairwise(timed) if before.night < night <= after.night), None)
