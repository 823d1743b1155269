"""Judges what a case returned: an alarm is opened when a version no longer returns what the reference does.

The verdict of a night rests on several replicates of both versions, so a night needs no confirmation by another. A case
whose results change back and forth between nights, as those near a tolerance do, has one alarm that stays open.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path

from orchestrator.history.alarms import state
from orchestrator.history.alarms.opened import open_alarm
from orchestrator.history.model import Alarm, AlarmOpened, Change, Moved, Point, Series
from orchestrator.history.surroundings import cuts
from orchestrator.results.outputs import describe_output

DIFFERS, NOT_COMPARABLE = "differs", "not comparable"
# This many nights with equal results make another one a change, and end an alarm.
NIGHTS = 2


def judge(
    series: Series, alarms: Sequence[Alarm], today: date, now: datetime, runs: Path
) -> Iterator[AlarmOpened | Moved]:
    """Judge the results of one case in one version tonight."""
    nights = comparable_nights(series.points)
    if not nights or nights[-1].night != today:
        return
    differs = nights[-1].verdict == DIFFERS
    is_open = [alarm for alarm in alarms if state.is_open(alarm)]
    for alarm in is_open:
        if differs and alarm.state == "new" and alarm.raised < today:
            yield Moved(at=now, alarm=alarm.id, state="confirmed", night=today)
        elif all(night.verdict != DIFFERS and night.night > alarm.raised for night in nights[-NIGHTS:]):
            yield Moved(at=now, alarm=alarm.id, state="recovered", night=today)
    before = nights[-1 - NIGHTS : -1]
    if differs and not is_open and len(before) == NIGHTS and _is_comparable(before, nights[-1]):
        change = _change(before[-1], nights[-1])
        alarm = open_alarm(series, change, (before[-1], nights[-1]), now, runs, describe(nights[-1]))
        yield AlarmOpened(at=now, alarm=alarm)


def comparable_nights(points: Sequence[Point]) -> list[Point]:
    """Return the last point of each night on which the results of both versions could be compared."""
    by_night = {point.night: point for point in points if point.verdict != NOT_COMPARABLE}
    return list(by_night.values())


def _is_comparable(before: Sequence[Point], tonight: Point) -> bool:
    """Return whether the results were equal until tonight, in the same surroundings."""
    return all(night.verdict != DIFFERS and not cuts(night, tonight) for night in before)


def _change(before: Point, tonight: Point) -> Change:
    ratio = 1 + min(1.0, tonight.version_figure if tonight.version_figure is not None else 1.0)
    return Change(
        first=tonight.night, last=before.night, before=1.0, after=ratio, ratio=ratio, ci_low=ratio, ci_high=ratio, p=0.0
    )


def describe(point: Point) -> str:
    """Return what a night says of results, such as `results differ by 2%`."""
    return describe_output(point.verdict, point.version_figure, point.reason)
