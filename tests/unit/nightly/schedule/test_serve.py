"""Waiting for nights: each begins once, whatever the clock does and whenever the program was started."""

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.nightly import lock
from orchestrator.nightly.schedule import serve
from orchestrator.nightly.schedule.units import Schedule
from tests.support.heard import Heard
from tests.support.schedules import PLANNED, wanted

# A nightly run that goes by the clock of the test, and measures nothing.
CLAIMS = """
import sys
from datetime import datetime
from pathlib import Path
from orchestrator.nightly.due import DueNights, time_of_day
noted, now, name, *words = sys.argv[1:]
at, missed = words[words.index("--if-due") + 1], words[words.index("--missed") + 1]
if DueNights(name, time_of_day(at), missed).claim(datetime.fromisoformat(Path(now).read_text())):
    with open(noted, "a") as file:
        print(*words, file=file)
    print("said")
    sys.exit(6)
"""


class World:
    """A clock that pauses move on, and a program that notes when it was run."""

    def __init__(self, folder: Path, now: str) -> None:
        self.now = datetime.fromisoformat(now)
        self.noted = folder / "noted"
        self.noted.touch()
        self.history = folder / "history"
        self.said: list[str] = []
        self.pauses: list[float] = []
        self.jumps: dict[datetime, datetime] = {}
        self.until = self.now
        self.shown = folder / "now"

    def schedule(self, **fields: str) -> Schedule:
        program = (sys.executable, "-c", CLAIMS, str(self.noted), str(self.shown), PLANNED.nights)
        return wanted(program, history=str(self.history), **fields)

    def clock(self) -> datetime:
        self.shown.write_text(str(self.now))
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += timedelta(seconds=seconds)
        for at, to in list(self.jumps.items()):
            if self.now >= at:
                del self.jumps[at]
                self.now = to
        if not self.jumps and self.now >= self.until:
            raise KeyboardInterrupt

    def serve(self, until: str, **fields: str) -> list[str]:
        """The nights that began until then."""
        self.until = datetime.fromisoformat(until)
        self.said.clear()
        with pytest.raises(KeyboardInterrupt):
            serve.serve_nights(self.schedule(**fields), Heard(self.said), self.clock, self.pause)
        return [line.partition(": exit code 6 after")[0] for line in self.said if ": exit code 6 after" in line]


@pytest.fixture
def world(monkeypatch, tmp_path):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    return World(tmp_path, "2026-11-03 12:00")


def test_every_night_begins_at_its_time_and_is_told_in_a_line(world):
    assert world.serve("2026-11-06 12:00") == ["2026-11-04", "2026-11-05", "2026-11-06"]
    assert (
        world.noted.read_text()
        == "nightly run --versions 2.13,nightly --suite studies --if-due 02:30 --missed catch-up\n" * 3
    )
    assert world.said[0].startswith("the next nightly run starts at 2026-11-04 02:30 ")
    assert world.said[0].endswith(", in 14 h 30 min")
    logs = sorted((world.history / "log").iterdir())
    assert [log.name for log in logs] == [f"nightly-2026-11-0{day}.log" for day in (4, 5, 6)]
    assert logs[0].read_text() == "said\n"
    assert str(logs[0]) in world.said[1]
    # In short steps, and to the second at the end.
    assert max(world.pauses) == serve.STEP_S


def test_what_was_due_before_anybody_waited_was_not_missed(world):
    assert world.serve("2026-11-04 02:00") == []


def test_a_night_that_was_missed_is_caught_up_or_skipped_as_asked(world):
    assert world.serve("2026-11-04 03:00") == ["2026-11-04"]
    world.now = datetime(2026, 11, 7, 15)
    assert world.serve("2026-11-07 16:00") == ["2026-11-07"]
    world.now = datetime(2026, 11, 9, 15)
    assert world.serve("2026-11-10 03:00", missed="skip") == ["2026-11-10"]
    assert "2026-11-09: missed, and skipped" in world.said


def test_a_night_that_waits_for_another_one_is_asked_for_again_without_a_word(world):
    with ExitStack() as held:
        held.enter_context(lock.hold())
        assert world.serve("2026-11-04 03:40") == []
        assert len(world.said) == 1
    assert world.serve("2026-11-04 04:00") == ["2026-11-04"]


def test_a_machine_that_slept_through_the_time_comes_late(world):
    world.jumps[datetime(2026, 11, 4, 1)] = datetime(2026, 11, 4, 8)
    assert world.serve("2026-11-04 09:00") == ["2026-11-04"]


def test_a_clock_that_was_years_ahead_keeps_nobody_waiting_for_years(world):
    world.jumps[datetime(2026, 11, 4, 1)] = datetime(2031, 1, 1, 12)
    world.jumps[datetime(2031, 1, 1, 13)] = datetime(2026, 11, 4, 2)
    assert world.serve("2026-11-05 12:00") == ["2031-01-01", "2026-11-04", "2026-11-05"]


def test_an_hour_that_comes_twice_has_one_night(world):
    world.jumps[datetime(2026, 11, 4, 3)] = datetime(2026, 11, 4, 2)
    assert world.serve("2026-11-05 12:00") == ["2026-11-04", "2026-11-05"]


def test_a_program_that_cannot_be_run_is_told_and_waited_for_again(world):
    broken = wanted((str(world.history / "nowhere"),), history=str(world.history))
    world.until = datetime(2026, 11, 5, 12)
    with pytest.raises(KeyboardInterrupt):
        serve.serve_nights(broken, Heard(world.said), world.clock, world.pause)
    told = [line for line in world.said if "could not be run" in line]
    assert [line.partition(":")[0] for line in told] == ["2026-11-04", "2026-11-05"]
    assert "nowhere: No such file or directory" in told[0]


def test_a_night_that_hangs_is_ended(world, monkeypatch, tmp_path):
    monkeypatch.setattr("orchestrator.nightly.schedule.units.HARD_LIMIT_S", 1)
    ended = tmp_path / "ended"
    program = ("/bin/sh", "-c", f"trap 'touch {ended}; exit 1' TERM; while :; do sleep 0.1; done")
    world.until = datetime(2026, 11, 4, 12)
    with pytest.raises(KeyboardInterrupt):
        serve.serve_nights(
            wanted(program, history=str(world.history), limit_s=0), Heard(world.said), world.clock, world.pause
        )
    assert any(line.startswith("2026-11-04: hung, and was ended after") for line in world.said)
    assert ended.exists()


def test_a_data_folder_that_cannot_be_written_is_told_at_once(world, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r"cannot write .*TFCOMPARE_DATA"):
        serve.serve_nights(world.schedule(), Heard(world.said), world.clock, world.pause)


SERVES = """
import sys, time
from datetime import datetime
from orchestrator import interrupts
from orchestrator.nightly.schedule import serve
from tests.support.schedules import wanted
from orchestrator.terminal.view import View
interrupts.catch_signals()
{program}
clock = iter([datetime(2026, 11, 3, 12)] * 3)
later = datetime(2026, 11, 4, 2, 30)
try:
    serve.serve_nights(wanted(program, history=sys.argv[1]), View(), lambda: next(clock, later), lambda seconds: None)
except KeyboardInterrupt:
    print("ended")
"""


OBEDIENT = """
program = ("/bin/sh", "-c", "trap 'echo asked to end; exit 0' TERM; echo begun; while :; do sleep 0.1; done")
"""
# Like that of the command.
BOUND = """
from orchestrator.child_process import BOUND_PROGRAM, PROGRAM
waits = (
    "from orchestrator import interrupts; import time; interrupts.catch_signals(); print('begun', flush=True)\\n"
    "try: time.sleep(600)\\n"
    "except KeyboardInterrupt: print('asked to end')"
)
program = (*BOUND_PROGRAM[:-1], BOUND_PROGRAM[-1].replace(PROGRAM[-1], waits))
"""


@pytest.mark.parametrize(("program", "number"), [(OBEDIENT, signal.SIGTERM), (BOUND, signal.SIGKILL)])
def test_an_end_during_a_night_ends_the_night_first(monkeypatch, tmp_path, program, number):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    serves = SERVES.replace("{program}", program)
    process = subprocess.Popen([sys.executable, "-c", serves, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    log = tmp_path / "log" / "nightly-2026-11-04.log"

    def wait_for(line: str) -> None:
        deadline = time.monotonic() + 60
        while not (log.exists() and line in log.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    wait_for("begun")
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    if number == signal.SIGTERM:
        assert said.splitlines()[-1] == "ended"
    wait_for("asked to end")
    assert log.read_text() == "begun\nasked to end\n"


@pytest.mark.slow
def test_both_devices_are_served_at_once_and_each_by_one_program(monkeypatch, tmp_path):
    """As docker-compose.yml starts them: with one folder of data and one name of the machine."""
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    at = f"{datetime.now() + timedelta(hours=12):%H:%M}"
    argv = [sys.executable, "-m", "orchestrator", "nightly", "serve", "--at", at, "--versions", "2.13,2.16"]
    with ExitStack() as started:

        def begin(*device: str) -> subprocess.Popen[str]:
            process = subprocess.Popen([*argv, *device], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            started.enter_context(process)
            started.callback(process.terminate)
            return process

        def read_line(process: subprocess.Popen[str]) -> str:
            assert process.stdout is not None
            return process.stdout.readline()

        for device in ((), ("--gpu",)):
            assert read_line(begin(*device)).startswith("the next nightly run starts at ")
        for device, name in (((), "nightly-serve-cpu"), (("--gpus", "0"), "nightly-serve-gpu")):
            refused = begin(*device)
            assert f"another {name} is in progress here since" in read_line(refused)
            assert refused.wait(60) == 2
        status = subprocess.run([*argv[:4], "status", "--format", "json"], capture_output=True, text=True, timeout=60)
        assert [schedule["by"].partition(" (")[0] for schedule in json.loads(status.stdout)] == [
            "`tfcompare nightly serve`"
        ] * 2
    assert len(list((tmp_path / "tfcompare").glob("nights-*.json"))) == 2
