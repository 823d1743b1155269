"""A history that is synced between machines, and may come back damaged: what can be read is, the rest is named."""

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from orchestrator.formats import EVENT as EVENT_FORMAT
from orchestrator.history.model import AlarmOpened, CauseFound, Event, StateChanged
from orchestrator.history.store import Store
from tests.fuzz.damage import damaged_bytes, damaged_json, dump
from tests.fuzz.memory import bounded_memory
from tests.support.golden import GOLDEN
from tests.support.night_reports import NIGHT, alarm

POINTS, EVENT = "points/2026-11/20261101-020304-a-screen.parquet", "events/2026-11/20261101-020304-a.json"
SAMPLE = (GOLDEN / "points.parquet").read_bytes()
MOVED = StateChanged(at=NIGHT.at, alarm="3f2a1b", state="known", note="wait", until=date(2026, 12, 1))
EXPLAINED = CauseFound(at=NIGHT.at, alarm="3f2a1b", good="a", findings=("grown: call",))
EVENTS = [
    {"format": EVENT_FORMAT.mark, **TypeAdapter(Event).dump_python(event, mode="json")}
    for event in (AlarmOpened(at=NIGHT.at, alarm=alarm(1.5)), MOVED, EXPLAINED, NIGHT)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("fuzz") / "history"
    for name in (POINTS, EVENT):
        (folder / name).parent.mkdir(parents=True)
    return Store(folder)


def test_the_samples_themselves_are_right(store: Store):
    (store.path / POINTS).write_bytes(SAMPLE)
    assert store.read().points()
    assert store.read().warnings == ()
    for event in EVENTS:
        (store.path / EVENT).write_text(json.dumps(event))
        assert (len(store.events()[0]), store.events()[1]) == (1, ())


@given(damaged=damaged_bytes(SAMPLE))
def test_damaged_points(store: Store, damaged: bytes):
    (store.path / POINTS).write_bytes(damaged)
    with bounded_memory():
        read = store.read()
    assert len(read.warnings) <= 1
    assert all("\n" not in warning for warning in read.warnings)
    assert not (read.warnings and read.points())


@given(damaged=st.one_of([damaged_json({"event": event}) for event in EVENTS]))
def test_a_damaged_event(store: Store, damaged: object):
    (store.path / EVENT).write_bytes(dump(damaged.get("event") if isinstance(damaged, dict) else damaged))
    with bounded_memory():
        events, warnings = store.events()
    assert len(events) + len(warnings) == 1
    assert all("\n" not in warning for warning in warnings)


@given(damaged=damaged_bytes(json.dumps(EVENTS[0]).encode()))
def test_an_event_with_damaged_bytes(store: Store, damaged: bytes):
    (store.path / EVENT).write_bytes(damaged)
    with bounded_memory():
        events, warnings = store.events()
    assert len(events) + len(warnings) == 1
