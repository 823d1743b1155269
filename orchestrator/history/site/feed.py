"""An Atom feed of alarms: one entry when an alarm begins, and one when it ends."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.history.alarms import state
from orchestrator.history.model import Alarm, AlarmOpened, Event, StateChanged
from orchestrator.history.site import wording
from orchestrator.history.wording import describe_cause
from orchestrator.reports.html.atom import FeedItem, render_feed

# Feed readers keep older entries that they have seen.
MOST_ENTRIES = 100


@dataclass(frozen=True, kw_only=True)
class FeedEntry:
    alarm: Alarm
    recovered: bool
    at: datetime
    note: str = ""


def entries(events: Iterable[Event]) -> list[FeedEntry]:
    """Return the entries of the feed, newest first.

    The events must be in the order in which they happened.
    """
    events = list(events)
    # These alarms include what is known about their causes by now.
    alarms = {alarm.id: alarm for alarm in state.current(events)}
    feed_entries = []
    for event in events:
        if isinstance(event, AlarmOpened):
            feed_entries.append(FeedEntry(alarm=alarms[event.alarm.id], recovered=False, at=event.at))
        elif isinstance(event, StateChanged) and event.alarm in alarms:
            recovered = event.state == "recovered"
            # An event that takes back a mute has no night: no nightly run saw the alarm begin again.
            if not recovered and (event.state != "new" or event.night is None):
                continue
            feed_entries.append(FeedEntry(alarm=alarms[event.alarm], recovered=recovered, at=event.at, note=event.note))
    return feed_entries[::-1][:MOST_ENTRIES]


def atom(feed_entries: Iterable[FeedEntry], first_run: str, cases: Collection[str]) -> bytes:
    """Return the feed as XML.

    `first_run` is the oldest run of the history. Its name distinguishes this feed from those of other histories.
    """
    items = (_make_item(entry, cases) for entry in feed_entries)
    return render_feed("tfcompare: alarms", f"feed\n{first_run}", items, alternate="alarms.html")


def _make_item(entry: FeedEntry, cases: Collection[str]) -> FeedItem:
    alarm = entry.alarm
    word = "recovered" if entry.recovered else "new"
    return FeedItem(
        key=f"{alarm.id}\n{alarm.key.id}\n{word}\n{_utc(entry.at)}",
        title=("Recovered: " if entry.recovered else "") + wording.headline(alarm),
        updated=_utc(entry.at),
        link=wording.show_alarm(alarm, cases).page,
        categories=(word, alarm.change.direction),
        lines=(
            f"{alarm.key.target} {wording.describe_series(alarm.key)}.",
            *([f"Recovered: {entry.note}" if entry.note else "Recovered."] if entry.recovered else []),
            f"Different that night: {'; '.join(alarm.surroundings) or 'nothing that is recorded'}.",
            *describe_cause(alarm),
            f"Run: {alarm.run}",
            f"Reproduce: {alarm.reproduce}",
            *([f"Find the version: {alarm.bisect}"] if alarm.bisect else []),
            *([f"Why: {alarm.why}"] if alarm.why else []),
        ),
    )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
