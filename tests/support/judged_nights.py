"""Nights of one case as they are judged: their events, and what each night reports."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from orchestrator.cli.nightly.run import ending
from orchestrator.errors import TfCompareError
from orchestrator.history.alarms import state
from orchestrator.history.alarms.judge import NightVerdict, judge_night, report_events
from orchestrator.history.model import Alarm, AlarmOpened, Event, Night, NightReport, Point, State, StateChanged
from tests.support.nights import FIRST, history, labels, series_of

RUNS = Path("history/runs")
[CASE] = labels(1)


def at(night: date) -> datetime:
    return datetime.combine(night, time(4), UTC)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def made(nights: int, steps: Mapping[int, float], versions: tuple[str, ...] = ("2.0.0",), **changes: object):
    """Thirty rounds a night, as nights have that were confirmed."""
    points = history(nights, 1, versions, steps={(CASE, versions[0]): steps}, noise=0.02, **changes)
    return [replace(point, rounds=40 if point.target == versions[0] else 10) for point in points]


def judged(points: list[Point], events: list[Event], tonight: date) -> NightVerdict:
    own = {point.key for point in points if point.night == tonight}
    so_far = [point for point in points if point.night <= tonight]
    alike = {point.run for point in so_far}
    return judge_night(series_of(so_far), state.current(events), tonight, at(tonight), own, RUNS, alike)


def lived(points: list[Point], first: int = 0, says: Mapping[int, State] | None = None) -> list[Event]:
    """The events of every night, one after another; after some of them a user says so of all open alarms."""
    events: list[Event] = []
    for night in sorted({point.night for point in points}):
        if night < day(first):
            continue
        events += judged(points, events, night).events
        if said := (says or {}).get((night - FIRST).days):
            is_open = filter(state.is_open_alarm, state.current(events))
            hour = at(night) + timedelta(hours=1)
            events += [StateChanged(at=hour, alarm=alarm.id, state=said, note="seen") for alarm in is_open]
    return events


def opened(events: list[Event]) -> list[Alarm]:
    return [event.alarm for event in events if isinstance(event, AlarmOpened)]


def night_of(tonight: date) -> Night:
    return Night(
        at=at(tonight), night=tonight, started=at(tonight), host="host", suite="made", targets=("2.0.0",),
        run="r", outcome="measured", said=(), cells=1, screened=1, confirmed=1, exit_code=0, device="cpu",
        engine="venv", selected=(), flags=(),
    )  # fmt: skip


def lasting(nights: int, steps: dict[int, float]) -> list[Point]:
    """Return points whose noise is small beside every step, so that each is found on its first night."""
    points = history(nights, 1, ("2.0.0",), steps={(CASE, "2.0.0"): steps}, noise=0.008)
    return [replace(point, rounds=72 if point.target == "2.0.0" else 12) for point in points]


def what(event: Event) -> tuple[int, str]:
    if isinstance(event, AlarmOpened):
        return (event.at.date() - FIRST).days, event.alarm.change.direction
    return (event.at.date() - FIRST).days, event.state if isinstance(event, StateChanged) else event.kind


def report_of(events: list[Event], number: int) -> NightReport:
    """What a night reports, by the events of all nights."""
    night = day(number)
    until = [event for event in events if event.at <= at(night)]
    verdict = NightVerdict(
        events=tuple(event for event in until if event.at == at(night)), appeared=(), vanished=(), warnings=(), notes=()
    )
    return report_events(NightReport(night=night_of(night)), verdict, state.current(until), night)


def exit_codes(events: list[Event]) -> dict[int, int]:
    """The exit code of each night that has another one than 0."""
    numbers = sorted({(event.at.date() - FIRST).days for event in events})
    errors = {number: ending(report_of(events, number)) for number in numbers}
    return {number: error.exit_code for number, error in errors.items() if isinstance(error, TfCompareError)}
