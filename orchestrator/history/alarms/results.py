"""Judges what a case returned: an alarm is opened when a version no longer returns what the reference does.

The verdict of a night rests on several replicates of both versions, so it needs neither a confirmation by another night
nor an earlier level. Other changes of that night are listed, but never suppress an alarm. If results change back and
forth between nights, as those near a tolerance do, one alarm stays open; another one is opened only if they differ by
several times as much.
"""

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path

from orchestrator.history.alarms import state
from orchestrator.history.alarms.opened import open_alarm
from orchestrator.history.model import Alarm, AlarmOpened, Change, Judged, Point, Series, StateChanged
from orchestrator.results.outputs import describe_output

DIFFERS, NOT_COMPARABLE = "differs", "not comparable"
# This many nights with equal results end an alarm, and make the next difference a change.
NIGHTS = 2
# A difference of more than this many times that of an open alarm opens another alarm.
GROWN = 5.0


def judge_results(series: Series, alarms: Sequence[Alarm], today: date, now: datetime, runs: Path) -> Iterator[Judged]:
    """Judge the results of one case in one version tonight."""
    nights = comparable_nights(series.points)
    if not nights or nights[-1].night != today:
        return
    is_open = sorted((alarm for alarm in alarms if state.is_open_alarm(alarm)), key=lambda alarm: alarm.night)
    # The size of an alarm is the difference measured on its night; later alarms are about larger differences.
    told = {night.night: _measure(night) for night in nights}
    known = 0.0
    for alarm in is_open:
        shows = [_measure(night) > GROWN * known and night.night >= alarm.night for night in nights[-NIGHTS:]]
        if shows[-1] and alarm.state == "new" and alarm.night < today:
            yield StateChanged(at=now, alarm=alarm.id, state="confirmed", night=today)
        elif not any(shows) and all(night.night > alarm.night for night in nights[-NIGHTS:]):
            yield StateChanged(at=now, alarm=alarm.id, state="recovered", night=today)
        known = max(known, told.get(alarm.night, alarm.change.ratio - 1))
    before = nights[-1 - NIGHTS : -1]
    was_equal = len(before) == NIGHTS and not any(map(_measure, before))
    if before and _measure(nights[-1]) > GROWN * known and (is_open or was_equal):
        was, ratio = (1 + min(1.0, _measure(night)) for night in (before[-1], nights[-1]))
        change = Change(
            first=today,
            last=before[-1].night,
            before=was,
            after=ratio,
            ratio=ratio,
            ci_low=ratio,
            ci_high=ratio,
            p=0.0,
        )
        alarm = open_alarm(series, change, (before[-1], nights[-1]), now, runs, describe_results(nights[-1]))
        yield AlarmOpened(at=now, alarm=alarm)


def _measure(night: Point) -> float:
    """Return the share by which results differed on a night: 0 if they did not, infinity if no share is known."""
    if night.verdict != DIFFERS:
        return 0.0
    share = night.target_figure
    return share if share and math.isfinite(share) else math.inf


def comparable_nights(points: Sequence[Point]) -> list[Point]:
    """Return the last point of each night on which the results of both versions could be compared."""
    by_night = {point.night: point for point in points if point.verdict != NOT_COMPARABLE}
    return list(by_night.values())


def describe_results(point: Point) -> str:
    """Describe the results of a night, as in `results differ by 2%`."""
    return describe_output(point.verdict, point.target_figure, point.reason)
