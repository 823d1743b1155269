"""A history in which there is something to see, its alarm, and what is read of it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from orchestrator.history.model import Alarm, Event, Point, StateChanged
from orchestrator.history.store import Read, Store
from tests.support import nights_shown as shown


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return shown.points()


@pytest.fixture(scope="module")
def alarm(points: list[Point]) -> Alarm:
    return replace(shown.alarm(points), note="the new [b]allocator[/b]", state="known")


@pytest.fixture(scope="module")
def shown_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    points = shown.points()
    alarm = shown.alarm(points)
    store = shown.kept_in(tmp_path_factory.mktemp("history"), points, alarm)
    store.record(shown.NIGHT)
    store.record(StateChanged(at=datetime(2024, 2, 11, 9, tzinfo=UTC), alarm=alarm.id, state="known", note="wanted"))
    return store


@pytest.fixture(scope="module")
def read(shown_store: Store) -> Read:
    return shown_store.read()


@pytest.fixture(scope="module")
def events(shown_store: Store) -> list[Event]:
    return shown_store.events()[0]
