"""Turns a user's decision about an alarm into an event."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError
from orchestrator.history.alarms.state import is_open_alarm
from orchestrator.history.model import Alarm, Event, State, StateChanged

# Users set these states; nightly runs set all others.
SET_BY_USERS: tuple[State, ...] = ("known", "muted")


def find_alarm(alarms: Sequence[Alarm], asked: str) -> Alarm:
    """Return the alarm with this id, or the only one whose id begins like this; it must still be open."""
    matches = [alarm for alarm in alarms if alarm.id == asked] or [
        alarm for alarm in alarms if asked and alarm.id.startswith(asked)
    ]
    if len(matches) > 1:
        raise UsageError(f"{asked} is the beginning of several alarms: {', '.join(alarm.id for alarm in matches)}")
    if not matches:
        near = did_you_mean(asked, [alarm.id for alarm in alarms])
        raise UsageError(f"no alarm {asked!r}{near}; `tfcompare history alarms --all` lists them")
    (alarm,) = matches
    if not is_open_alarm(alarm):
        raise UsageError(f"alarm {alarm.id} is {alarm.state}: it can no longer be changed")
    return alarm


def move_alarm(alarm: Alarm, state: State, note: str, now: datetime, until: date | None = None) -> StateChanged:
    if not note.strip():
        raise UsageError(f"--note is empty: say why {alarm.id} is {state}, for later readers")
    if until and until < now.astimezone().date():
        raise UsageError(f"--until {until} is in the past")
    return StateChanged(at=now, alarm=alarm.id, state=state, note=note.strip(), until=until)


def take_back(alarm: Alarm, events: Iterable[Event], note: str, now: datetime) -> StateChanged:
    """Return the event that restores the state which nightly runs gave the alarm before a user changed it."""
    if alarm.state not in SET_BY_USERS:
        raise UsageError(f"alarm {alarm.id} is {alarm.state}, neither muted nor known: there is nothing to take back")
    own = (event for event in events if isinstance(event, StateChanged) and event.alarm == alarm.id)
    states = [event.state for event in own if event.state not in SET_BY_USERS]
    return StateChanged(at=now, alarm=alarm.id, state=states[-1] if states else "new", note=note.strip())
