"""Nights as they come: measured in two environments, judged by the nights before, told to a server that listens here.

Their TensorFlow is a stub, since the workload asks nothing of it.
The nights before are the first one's points, written again with other dates and a little noise; the pace of a workload
is changed by a file that no source shows.
"""

import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from shutil import copy

import pytest

from orchestrator.history.alarms import state
from orchestrator.history.alarms.steps import CONFIRM_TIMES
from orchestrator.history.model import Alarm, AlarmOpened, Night, Point, StateChanged
from orchestrator.history.store import Store
from tests.conftest import run_command

VERSIONS = "1.14,2.0"
WORKLOAD = Path(__file__).parent / "workloads" / "pace.py"
NIGHTS_BEFORE = 20
NOISE = 0.01
# Of a screening; a confirmation takes several times as many.
ROUNDS = 3
# Milliseconds, MiB and a result for each version, and the milliseconds of a first call.
Paces = dict[str, tuple[int, int, float, int]]
QUICKLY: Paces = {"1.14": (10, 20, 1.0, 10), "2.0": (12, 20, 1.0, 12)}
CHANGED: Paces = {**QUICKLY, "2.0": (18, 60, 1.5, 150)}


@dataclass
class House:
    """A history, a workload whose pace can be set, and a server to be told."""

    command: str
    folder: Path
    told: list[dict[str, str]]
    address: str
    env: dict[str, str]

    @property
    def store(self) -> Store:
        return Store(self.folder / "history")

    def pace(self, paces: Paces) -> None:
        (self.folder / "own" / "pace.json").write_text(json.dumps(paces))

    def night(self, *flags: str):
        own = ("--workload-folder", self.folder / "own", "--case", "pace", "--engine", "venv", "--rounds", str(ROUNDS))
        kept = ("--history", self.store.path, "--notify", self.address)
        return run_command(self.command, "nightly", "run", "--versions", VERSIONS, *own, *kept, *flags, env=self.env)

    def alarms(self) -> dict[str, Alarm]:
        """The alarms, by what they are about."""
        return {alarm.key.metric: alarm for alarm in state.current(self.store.events()[0])}

    def nights(self) -> list[Night]:
        return [event for event in self.store.events()[0] if isinstance(event, Night)]


@pytest.fixture(scope="module")
def house(tfcompare: str, stub_cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("night")
    (folder / "own").mkdir()
    copy(WORKLOAD, folder / "own")
    told: list[dict[str, str]] = []

    class Listens(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Listens)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = House(tfcompare, folder, told, f"json://127.0.0.1:{server.server_port}", stub_cache)
    made.pace(QUICKLY)
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def first(house: House):
    """The first night, moved to the past and followed by more like it."""
    done = house.night()
    assert done.returncode == 0, done.stderr
    points = house.store.read().points()
    return done, points


@pytest.fixture(scope="module")
def alarmed(house: House, first):
    [file] = house.store.path.glob("points/*/*.parquet")
    file.unlink()
    draw = random.Random(1)
    for before in range(NIGHTS_BEFORE, 0, -1):
        house.store.append([_before(point, before, draw.gauss(0, NOISE)) for point in first[1]])
    house.told.clear()
    house.pace(CHANGED)
    return house.night("--again")


def _before(point: Point, nights: int, noise: float) -> Point:
    earlier = timedelta(days=nights)
    sooner = replace(point, night=point.night - earlier, started=point.started - earlier, run=f"{point.run}-{nights}")
    return sooner if point.effect is None else replace(sooner, effect=point.effect + noise, error=NOISE)


def test_a_first_night_is_kept_and_raises_nothing(house: House, first):
    done, points = first
    assert {(point.target, point.reference, point.outcome) for point in points} == {
        ("2.0.0", "1.14.0", "measured"),
        ("1.14.0+control", "1.14.0", "measured"),
    }
    of_version = {point.metric: point for point in points if point.target == "2.0.0"}
    assert 0.1 < of_version.pop("time").effect < 0.3
    assert (of_version.pop("output").verdict, *of_version) == ("equal", "first", "memory")
    assert {point.rounds for point in points if point.metric != "output"} == {ROUNDS}
    night = house.nights()[0]
    assert (night.outcome, night.cells, night.confirmed, night.exit_code) == ("measured", 1, 0, 0)
    assert (house.store.runs / night.run / "report.html").stat().st_size > 10_000
    assert "nothing changed" in done.stdout


def test_a_night_that_was_measured_is_not_measured_again_unless_asked(house: House, first):
    nights = len(house.nights())
    done = house.night()
    assert done.returncode == 0
    assert "measured already" in done.stderr
    assert len(house.nights()) == nights


def test_what_became_slower_is_measured_again_the_same_night_and_is_an_alarm(house: House, alarmed):
    assert alarmed.returncode == 1, alarmed.stderr
    alarm = house.alarms()["time"]
    assert (alarm.key.target, alarm.change.direction, alarm.found_by) == ("2.0.0", "slower", "night")
    assert 1.3 < alarm.change.ratio < 1.7
    tonight = [point for point in house.store.read().points() if point.night == alarm.change.first and point.rounds]
    by_stage = [(point.stage, point.rounds) for point in tonight if point.key == alarm.key]
    assert by_stage[:2] == [("screen", ROUNDS), ("confirm", ROUNDS * CONFIRM_TIMES[0])]
    assert {stage for stage, _ in by_stage[1:]} == {"confirm"}
    assert {point.run for point in tonight} <= house.store.list_runs()
    assert house.nights()[-1].confirmed == 1


def test_more_memory_a_slower_first_call_and_other_results_are_alarms_of_their_own(house: House, alarmed):
    found = house.alarms()
    assert set(found) == {"time", "first", "memory", "output"}
    assert 1.2 < found["memory"].change.ratio < 2.0
    assert found["output"].said == "results differ by 33%"
    for text in ("more peak memory", "results differ by 33%: pace in 2.0.0"):
        assert text in house.told[0]["message"]
    asked = ("history", "pace", "--metric", "memory,output", "--history", house.store.path)
    shown = run_command(house.command, *asked).stdout
    assert "peak memory" in shown
    assert "results differ by 33%" in shown


def test_people_are_told_what_where_how_much_and_how_to_look(house: House, alarmed):
    [message] = house.told
    assert "1 more peak memory, 1 slower, 1 with other results" in message["title"]
    alarm = house.alarms()["time"]
    for part in ("pace", "2.0.0", alarm.id, "tfcompare run --versions 1.14.0,2.0.0", str(alarm.change.first)):
        assert part in message["message"]
    assert message["message"].splitlines()[0] in alarmed.stdout


def test_a_person_says_that_it_is_known(house: House, alarmed):
    said = ("--note", "a sleep, on purpose", "--history", house.store.path)
    assert run_command(house.command, "history", "known", house.alarms()["time"].id, *said).returncode == 0
    known = house.alarms()["time"]
    assert (known.state, known.note) == ("known", "a sleep, on purpose")


@pytest.mark.long
def test_what_is_known_is_no_news(house: House, alarmed):
    house.told.clear()
    done = house.night("--again")
    assert done.returncode == 0, done.stderr
    assert house.told == []
    events = house.store.events()[0]
    assert len([event for event in events if isinstance(event, AlarmOpened)]) == 4
    assert len([event for event in events if isinstance(event, StateChanged)]) == 1


def test_a_night_that_hangs_is_ended_and_told_though_somebody_cannot_be(house: House, alarmed):
    house.told.clear()
    house.pace({**CHANGED, "2.0": (600_000, 60, 1.5, 600_000)})
    done = house.night("--again", "--limit", "8s", "--notify", "json://127.0.0.1:9")
    assert done.returncode == 6, done.stderr
    assert house.nights()[-1].outcome == "hung"
    [message] = house.told
    assert "hung" in message["title"]
    assert "(target 2) was not told: it refused the connection" in done.stderr
