"""Histories that are not what they should be: each is one sentence, loses nothing, and raises no alarm."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from orchestrator.errors import EnvironmentFailed
from orchestrator.history.model import AlarmOpened, NightReport, Point
from orchestrator.history.points import of_run
from orchestrator.history.schema import FORMAT, SCHEMA
from orchestrator.history.store import Store
from orchestrator.machine.host import host_facts
from orchestrator.nightly import night as nights
from orchestrator.nightly.night import run_night
from orchestrator.nightly.options import NightOptions
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.results.run import load_run
from orchestrator.terminal.view import View
from tests.support.trends import written

BEFORE = 20


class House:
    """Nights before this one, of which the last may have been changed, and one that measures the usual."""

    def __init__(self, folder: Path) -> None:
        self.asked = 0
        self.options = NightOptions(history=folder / "history", names=("1.13", "2.13"), suite="made")
        self.store = Store(self.options.history)
        run = written(folder / "run")
        host = str(host_facts()["id"])
        self.points = [replace(point, host=host) for point in of_run(load_run(run), "screen") if point.has_value]

    def keep(self, days: int, slower: float = 0.0, **surroundings: str) -> None:
        """What was measured so many days ago, when everything took that much less."""
        then = timedelta(days=days)
        today = datetime.now(UTC)
        self.store.append(
            [
                replace(
                    point, night=today.astimezone().date() - then, started=today - then, run=f"20260101-{days:06}-made",
                    effect=(point.effect or 0.0) - slower, error=0.003,
                    surroundings=replace(point.surroundings, **surroundings),
                )
                for point in self.points
            ]
        )  # fmt: skip

    def night(self) -> NightReport:
        return run_night(self.options, View())


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    made = House(tmp_path)

    def measure(child: Child, words: Sequence[str]) -> ChildEnd:
        made.asked += 1
        path = written(Path(words[words.index("--output") + 1]), f"20261101-02030{made.asked}-made")
        change(path / "manifest.json", host={"id": host_facts()["id"]})
        change(path / "plan.json", created=datetime.now(UTC).isoformat())
        return ChildEnd(exit_code=0, hung=False, last_lines="")

    monkeypatch.setattr(Child, "run", measure)
    return made


def change(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def alarms(house: House) -> int:
    return sum(isinstance(event, AlarmOpened) for event in house.store.events()[0])


def runs(points: Sequence[Point]) -> int:
    return len({point.run for point in points})


def test_a_large_step_is_an_alarm_where_nothing_is_odd(house: House):
    for days in range(BEFORE, 0, -1):
        house.keep(days, slower=0.3)
    house.night()
    assert alarms(house) > 0


def test_two_machines_with_one_id(house: House):
    for days in range(BEFORE, 0, -1):
        house.keep(days, slower=0.3 if days % 2 else 0.0, boot=f"2026-01-01 08:00 UTC boot-{days % 2}")
    report = house.night()
    [warning] = report.warnings
    assert warning.startswith("two machines write to this history as host ")
    assert "\n" not in warning
    assert (report.night.outcome, report.night.exit_code, alarms(house)) == ("measured", 0, 0)
    assert runs(house.store.read().points()) == BEFORE + 1


def test_a_machine_that_was_started_several_times_is_one(house: House):
    for days in range(BEFORE, 0, -1):
        house.keep(days, boot=f"2026-01-01 08:00 UTC boot-{days // 3}")
    assert house.night().warnings == ()


def test_months_without_a_night(house: House):
    for days in range(100 + BEFORE, 100, -1):
        house.keep(days, slower=0.3)
    report = house.night()
    [said] = [text for text in report.night.said if "no night" in text]
    assert said.startswith("no night for 100 days: new segment in ")
    assert (report.warnings, alarms(house)) == ((), 0)
    assert runs(house.store.read().points()) == BEFORE + 1


def test_a_clock_that_was_ahead(house: House):
    for days in range(BEFORE, 0, -1):
        house.keep(days)
    house.keep(-3, slower=-0.3)
    report = house.night()
    [warning] = report.warnings
    assert "1 run started later here" in warning
    assert alarms(house) == 0
    assert runs(house.store.read().points()) == BEFORE + 2


def test_a_history_that_a_newer_tfcompare_writes(house: House):
    for days in range(BEFORE, 0, -1):
        house.keep(days)
    points = house.store.path / "points" / "2026-01" / "20260101-020304-newer-screen.parquet"
    event = house.store.path / "events" / "2026-01" / "20260101-020304-newer.json"
    for path in (points, event):
        path.parent.mkdir(parents=True, exist_ok=True)
    newer = SCHEMA.empty_table().replace_schema_metadata({FORMAT: "tfcompare.points/2"})
    pq.write_table(newer, points)
    event.write_text(json.dumps({"format": "tfcompare.event/2", "kind": "thought"}))
    report = house.night()
    assert len(report.warnings) == 2
    for path, warning in zip((event, points), report.warnings, strict=True):
        assert warning.startswith(f"{path} is left out: ")
        assert warning.endswith("the tfcompare that wrote it reads it")
        assert path.exists()
    assert (report.night.outcome, alarms(house)) == ("measured", 0)


def test_a_reference_that_the_index_has_no_more(house: House, monkeypatch: pytest.MonkeyPatch):
    for days in range(BEFORE, 0, -1):
        house.keep(days)

    def fail(*asked: object, **how: object) -> None:
        raise EnvironmentFailed(
            "the reference 1.13 is not available, and nothing can be measured without it: the index has it no more"
        )

    monkeypatch.setattr(nights.versions, "resolve_followed", fail)
    report = house.night()
    assert report.night.outcome == "failed"
    [said] = report.night.said
    assert said.startswith("the reference 1.13 is not available")
    assert alarms(house) == 0
    assert runs(house.store.read().points()) == BEFORE


def test_a_reference_that_can_no_longer_be_installed_is_one_sentence_for_all_versions(house: House, monkeypatch):
    for days in range(BEFORE, 0, -1):
        house.keep(days)
    reason = "the reference 1.13.2: environment: the index has no file of pip==24.0 for this Python"
    dead = {"outcome": "died", "reason": reason, "effect": None, "error": None, "rounds": 0}
    real = nights.of_run
    monkeypatch.setattr(nights, "of_run", lambda *asked: [replace(point, **dead) for point in real(*asked)])
    report = house.night()
    [warning] = report.warnings
    assert warning.startswith("nothing to compare in ")
    assert warning.endswith(reason)
    assert alarms(house) == 0
