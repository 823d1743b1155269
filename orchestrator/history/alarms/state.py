"""The state of alarms, derived from their events.

Nothing is changed in place: each decision of a user or a nightly run about an alarm adds an event.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from orchestrator.history.model import Alarm, AlarmOpened, CauseFound, Event, SizeChanged, StateChanged

# A nightly run does not report a change again while its alarm is in one of these states.
OPEN = ("new", "confirmed", "known", "muted")
# A note begins with these words if a change of the machine explained the alarm from the start.
BY_MACHINE = "began when the machine changed"


def current(events: Iterable[Event]) -> tuple[Alarm, ...]:
    """Return all alarms that ever existed, newest first.

    The events must be in the order in which they happened.
    """
    by_id: dict[str, Alarm] = {}
    for event in events:
        if isinstance(event, AlarmOpened):
            by_id[event.alarm.id] = replace(event.alarm, since=event.at)
        elif isinstance(event, StateChanged) and event.alarm in by_id:
            was = by_id[event.alarm]
            by_id[event.alarm] = replace(
                was,
                state=event.state,
                note=event.note or was.note,
                until=event.until,
                since=event.at,
                closed=(event.night or event.at.astimezone().date()) if event.state == "recovered" else None,
                borne_out=was.borne_out or event.state == "confirmed",
            )
        elif isinstance(event, SizeChanged) and event.alarm in by_id:
            was = by_id[event.alarm]
            by_id[event.alarm] = replace(was, left=event.left or was.left, apart=event.apart or was.apart)
        elif isinstance(event, CauseFound) and event.alarm in by_id:
            was = by_id[event.alarm]
            by_id[event.alarm] = replace(
                was,
                good=event.good or was.good,
                bad=event.bad or was.bad,
                commits=event.commits or was.commits,
                findings=event.findings or was.findings,
                bisect=event.bisect or was.bisect,
                searched=event.searched or was.searched,
            )
    return tuple(sorted(by_id.values(), key=lambda alarm: alarm.opened, reverse=True))


def is_open_alarm(alarm: Alarm) -> bool:
    return alarm.state in OPEN


def is_by_machine(alarm: Alarm) -> bool:
    """Return whether a change of the machine explains an alarm, as its note says from the start."""
    return alarm.note.startswith(BY_MACHINE)


def is_listed(alarm: Alarm, today: date) -> bool:
    """Return whether a nightly run lists this alarm.

    A muted alarm is listed again from the day after its mute ended.
    """
    return is_open_alarm(alarm) and (alarm.state != "muted" or (alarm.until is not None and alarm.until < today))
