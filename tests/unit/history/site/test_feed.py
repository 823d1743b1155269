"""The feed: what a reader of Atom makes of it."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestrator.history import site
from orchestrator.history.model import AlarmOpened, CauseFound, Event, StateChanged
from orchestrator.history.site import feed
from orchestrator.reports.html import atom
from tests.support.nights import history
from tests.support.sites import CASES, HOSTILE, alarm, at, kept

ATOM = f"{{{atom.ATOM}}}"
EVENTS: Sequence[Event] = (
    AlarmOpened(at=at(20), alarm=alarm(id="a0", number=20)),
    StateChanged(at=at(21), alarm="a0", state="confirmed"),
    StateChanged(at=at(30), alarm="a0", state="recovered", note="A new wheel."),
    AlarmOpened(at=at(40), alarm=alarm(CASES[1])),
    StateChanged(at=at(50), alarm="unknown", state="recovered"),
)


def read(events: Sequence[Event], first_run: str = "20240101-020000-0001") -> ElementTree.Element:
    return ElementTree.fromstring(feed.atom(feed.entries(events), first_run, CASES))


def told(element: ElementTree.Element, name: str) -> str:
    found = element.find(ATOM + name)
    assert found is not None
    assert found.text
    return found.text


def ids(root: ElementTree.Element) -> list[str]:
    return [told(entry, "id") for entry in root.iter(f"{ATOM}entry")]


def test_an_alarm_that_begins_and_one_that_ends_are_entries_the_newest_first():
    titles = [told(entry, "title") for entry in read(EVENTS).iter(f"{ATOM}entry")]
    assert titles == [
        f"{CASES[1]}: 1.10x slower (1.08-1.12) in 2.13.0 since 2024-02-10",
        f"Recovered: {CASES[0]}: 1.10x slower (1.08-1.12) in 2.13.0 since 2024-01-21",
        f"{CASES[0]}: 1.10x slower (1.08-1.12) in 2.13.0 since 2024-01-21",
    ]


def test_an_alarm_that_is_raised_again_has_a_new_entry():
    night = at(35).date()
    again = [
        *EVENTS[:3],
        StateChanged(at=at(35), alarm="a0", state="new", night=night),
        StateChanged(at=at(36), alarm="a0", state="new"),
    ]
    root = read(again)
    assert len(ids(root)) == len(set(ids(root))) == 3
    assert not told(next(root.iter(f"{ATOM}entry")), "title").startswith("Recovered")


def test_feed_and_entries_have_what_atom_requires():
    root = read(EVENTS)
    assert root.tag == f"{ATOM}feed"
    author = root.find(f"{ATOM}author/{ATOM}name")
    assert author is not None
    for element in (root, *root.iter(f"{ATOM}entry")):
        assert told(element, "id").startswith("urn:uuid:")
        assert told(element, "title")
        assert datetime.fromisoformat(told(element, "updated")).tzinfo is not None
    assert told(root, "updated") == told(next(root.iter(f"{ATOM}entry")), "updated") == "2024-02-10T04:00:00Z"
    rels = [link.get("rel") for link in root.findall(f"{ATOM}link")]
    assert rels == ["self", "alternate"]


def test_ids_are_unique_and_stay_when_more_happens():
    before, after = read(EVENTS[:2]), read(EVENTS)
    assert len(set(ids(after))) == len(ids(after)) == 3
    assert ids(after)[-1:] == ids(before)
    assert told(before, "id") == told(after, "id") != told(read(EVENTS, "another"), "id")


def test_an_alarm_that_recovers_twice_has_two_entries():
    again = (
        *EVENTS,
        StateChanged(at=at(60), alarm="a0", state="confirmed"),
        StateChanged(at=at(70), alarm="a0", state="recovered"),
    )
    assert len(set(ids(read(again)))) == 4


def test_hostile_text_stays_text():
    [entry] = read([AlarmOpened(at=at(1), alarm=alarm(f"case{HOSTILE}", run=HOSTILE))]).iter(f"{ATOM}entry")
    assert "<img src=x onerror" in told(entry, "title")
    assert "\x1b" not in told(entry, "content")
    assert {element.tag.removeprefix(ATOM) for element in entry} == {
        "id", "title", "updated", "published", "link", "category", "content",
    }  # fmt: skip


def test_no_more_than_the_newest_entries_are_kept():
    many = [AlarmOpened(at=at(number), alarm=alarm(id=str(number))) for number in range(feed.MOST_ENTRIES + 5)]
    found = ids(read(many))
    assert len(found) == feed.MOST_ENTRIES
    assert found[0] == ids(read(many[-1:]))[0]


def test_the_feed_of_a_site_leads_to_its_pages(tmp_path: Path):
    store = kept(tmp_path / "history", history(50, CASES))
    for event in EVENTS:
        store.record(event)
    site.build_site(store, tmp_path / "site")
    root = ElementTree.parse(tmp_path / "site" / "feed.xml").getroot()
    links = [link.get("href", "") for link in root.iter(f"{ATOM}link")]
    assert len(links) == 5
    for link in links:
        page, _, place = link.partition("#")
        text = (tmp_path / "site" / page).read_text()
        assert f'id="{place}"' in text or not place


def test_a_feed_without_alarms_is_a_feed(tmp_path: Path):
    site.build_site(kept(tmp_path / "history", history(2, CASES)), tmp_path / "site")
    root = ElementTree.parse(tmp_path / "site" / "feed.xml").getroot()
    assert ids(root) == []
    assert told(root, "updated")


@pytest.mark.parametrize("state", ["new", "confirmed", "known", "muted"])
def test_other_states_make_no_entries(state):
    assert len(ids(read([EVENTS[0], StateChanged(at=at(21), alarm="a0", state=state)]))) == 1


def test_an_entry_has_what_was_found_of_the_cause_since_then():
    events = [EVENTS[0], CauseFound(at=at(21), alarm="a0", findings=("grown: call (base_layer.py)",))]
    assert "\ngrown: call (base_layer.py)\n" in told(next(read(events).iter(f"{ATOM}entry")), "content")
