"""Nightlies that came while nobody measured: the night that finds a slowdown finds the nightly that brought it, too.

Their TensorFlow is a stub that says which commit it was made of; the index is a folder of empty wheels.
"""

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from shutil import copy

import pytest

from orchestrator import catalog
from orchestrator.history.alarms import state
from orchestrator.history.model import Alarm
from orchestrator.history.store import Store
from tests.conftest import run_command
from tests.support import stub_environments
from tests.support.nightly_locks import lock
from tests.support.packages import wheel

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

WORKLOAD = Path(__file__).parent / "workloads" / "pace.py"
DAYS = tuple(f"2.99.0.dev2026010{day}" for day in range(1, 4))
COMMITS = {number: f"{place}0fee1bad" for place, number in enumerate(DAYS)}
# The second is the first slow one.
PACES = {"2.13": (10, 20, 1.0)} | {number: (16 if number in DAYS[1:] else 12, 20, 1.0) for number in DAYS}
NIGHTS_BEFORE = 15


@dataclass
class Place:
    """A history, its workload, and an index that gets more nightlies."""

    command: str
    folder: Path
    env: dict[str, str]

    @property
    def store(self) -> Store:
        return Store(self.folder / "history")

    def publish(self, *numbers: str) -> None:
        for number in numbers:
            wheel(self.folder / "index", "tf_nightly", number)

    def night(self, *flags: str):
        own = ("--workload-folder", self.folder / "own", "--case", "pace", "--engine", "venv", "--rounds", "3")
        versions = ("--versions", "2.13,nightly", "--history", self.store.path)
        return run_command(self.command, "nightly", "run", *versions, *own, *flags, env=self.env)

    def alarm(self) -> Alarm:
        [found] = [alarm for alarm in state.current(self.store.events()[0]) if alarm.key.metric == "time"]
        return found


@pytest.fixture(scope="module")
def place(tfcompare: str, stub_cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("causes")
    for name in ("own", "index"):
        (folder / name).mkdir()
    copy(WORKLOAD, folder / "own")
    (folder / "own" / "pace.json").write_text(json.dumps(PACES))
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "index"), "TFCOMPARE_DATA": str(folder / "data")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFCOMPARE_DATA", env["TFCOMPARE_DATA"])
        catalog.reread()
        for number in DAYS:
            described = f"v1.12.1-9-g{COMMITS[number]}"
            stub_environments.build_nightly(Path(stub_cache["TFCOMPARE_CACHE"]), lock(number), "2.13", described)
    catalog.reread()
    return Place(tfcompare, folder, {**stub_cache, **env})


@pytest.fixture(scope="module")
def alarmed(place: Place):
    """One night that is the last of many, days without a night, and a night on which the third nightly is new."""
    place.publish(DAYS[0])
    first = place.night()
    assert first.returncode == 0, first.stderr
    points = place.store.read().points()
    [file] = place.store.path.glob("points/*/*.parquet")
    file.unlink()
    for before in range(NIGHTS_BEFORE, 0, -1):
        earlier = timedelta(days=before + 3)
        place.store.append(
            [
                replace(
                    point, night=point.night - earlier, started=point.started - earlier, run=f"{point.run}-{before}"
                )
                for point in points
            ]
        )
    place.publish(*DAYS[1:])
    return place.night("--again")


def test_the_alarm_names_the_nightly_that_brought_it_and_its_commits(place: Place, alarmed) -> None:
    assert alarmed.returncode == 1, alarmed.stderr
    alarm = place.alarm()
    assert (alarm.good, alarm.bad, alarm.searched) == (DAYS[0], DAYS[1], True), alarmed.stderr
    assert alarm.commits.endswith(f"/compare/{COMMITS[DAYS[0]]}...{COMMITS[DAYS[1]]}")
    for text in (f"between {DAYS[0]} (as before) and {DAYS[1]} (changed)", alarm.commits):
        assert text in alarmed.stdout
    shown = run_command(place.command, *alarm.bisect.split()[1:], env=place.env)
    assert f"{DAYS[1]} is slower than {DAYS[0]}" in " ".join(shown.stdout.split())


def test_the_alarm_says_why_both_nightlies_differ(place: Place, alarmed) -> None:
    cause, where = place.alarm().findings
    assert (
        cause == f"They differ in nothing else that can be undone, so the cause is TensorFlow {DAYS[0]} -> {DAYS[2]}."
    )
    assert where.startswith("where: grown: sleep ")
    assert where in alarmed.stdout


def test_what_was_searched_is_not_searched_again(place: Place, alarmed) -> None:
    done = place.night()
    assert done.returncode == 0, done.stderr
    assert "measured already" in done.stderr
    assert "searching" not in done.stderr
