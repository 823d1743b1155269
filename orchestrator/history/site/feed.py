"""An Atom feed of alarms: one entry when an alarm begins, and one when it ends."""

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree

from orchestrator.history.alarms import state
from orchestrator.history.model import Alarm, AlarmOpened, Event, StateChanged
from orchestrator.history.site import wording
from orchestrator.history.wording import describe_cause
from orchestrator.terminal.text import escape_unprintable

ATOM = "http://www.w3.org/2005/Atom"
# Feed readers keep older entries that they have seen.
MOST_ENTRIES = 100
NOTHING_YET = datetime(2015, 11, 9, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class FeedEntry:
    alarm: Alarm
    recovered: bool
    at: datetime
    note: str = ""

    @property
    def id(self) -> str:
        word = "recovered" if self.recovered else "new"
        return _urn(f"{self.alarm.id}\n{self.alarm.key.id}\n{word}\n{_utc(self.at)}")


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
    feed_entries = list(feed_entries)
    feed = ElementTree.Element("feed", xmlns=ATOM)
    _text(feed, "id", _urn(f"feed\n{first_run}"))
    _text(feed, "title", "tfcompare: alarms")
    _text(feed, "updated", _utc(max((entry.at for entry in feed_entries), default=NOTHING_YET)))
    ElementTree.SubElement(feed, "link", rel="self", type="application/atom+xml", href="feed.xml")
    ElementTree.SubElement(feed, "link", rel="alternate", type="text/html", href="alarms.html")
    _text(ElementTree.SubElement(feed, "author"), "name", "tfcompare")
    for entry in feed_entries:
        _entry(ElementTree.SubElement(feed, "entry"), entry, cases)
    ElementTree.indent(feed)
    return bytes(ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)) + b"\n"


def _entry(element: ElementTree.Element, entry: FeedEntry, cases: Collection[str]) -> None:
    alarm = entry.alarm
    description = wording.show_alarm(alarm, cases)
    _text(element, "id", entry.id)
    _text(element, "title", ("Recovered: " if entry.recovered else "") + wording.headline(alarm))
    _text(element, "updated", _utc(entry.at))
    _text(element, "published", _utc(entry.at))
    ElementTree.SubElement(element, "link", rel="alternate", type="text/html", href=description.page or "alarms.html")
    ElementTree.SubElement(element, "category", term="recovered" if entry.recovered else "new")
    ElementTree.SubElement(element, "category", term=alarm.change.direction)
    lines = [
        f"{alarm.key.target} {wording.describe_series(alarm.key)}.",
        *([f"Recovered: {entry.note}" if entry.note else "Recovered."] if entry.recovered else []),
        f"Different that night: {'; '.join(alarm.surroundings) or 'nothing that is recorded'}.",
        *describe_cause(alarm),
        f"Run: {alarm.run}",
        f"Reproduce: {alarm.reproduce}",
        *([f"Find the version: {alarm.bisect}"] if alarm.bisect else []),
        *([f"Why: {alarm.why}"] if alarm.why else []),
    ]
    _text(element, "content", "\n".join(map(escape_unprintable, lines)), type="text")


def _text(parent: ElementTree.Element, name: str, text: str, **attributes: str) -> None:
    # Only the feed's own line ends are kept: those in texts from elsewhere have been escaped before.
    safe = "\n".join(escape_unprintable(line) for line in text.split("\n"))
    ElementTree.SubElement(parent, name, attributes).text = safe


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"


def _urn(text: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, f"tfcompare\n{text}").urn
