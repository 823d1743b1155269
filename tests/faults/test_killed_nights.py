"""Nightly runs that are killed at a chosen moment; tests/soak kills them at random ones."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.history.model import Night
from orchestrator.history.store import Store
from orchestrator.results.run_folder import RunFolder
from tests.conftest import run_command
from tests.soak.kills import begun_at, check_history, ended_at, marked, until

TICKS = Path(__file__).parent.parent / "soak" / "workloads"
MARK = f"TF_CPP_SOAK=chosen-{os.getpid()}"


class House:
    """A history, and the variables and flags of nightly runs into it."""

    def __init__(self, tfcompare: str, stub_cache: dict[str, str], folder: Path) -> None:
        self.store = Store(folder / "history")
        self.data = folder / "data"
        (folder / "tmp").mkdir()
        name, _, value = MARK.partition("=")
        self.env = {**stub_cache, "TFCOMPARE_DATA": str(self.data), "TMPDIR": str(folder / "tmp"), name: value}
        self._tfcompare = tfcompare
        self._flags = ["--versions", "2.0,2.13", "--engine", "venv", "--workload-folder", str(TICKS)]
        self._flags += ["--rounds", "2", "--backfill", "0", "--history", str(self.store.path)]

    def argv(self, *words: str, case: str = "tick") -> list[str]:
        return [self._tfcompare, "nightly", *words, *self._flags, "--case", case]

    def kill_once_it_has(self, kind: str, *words: str) -> None:
        """Start a command, and kill it once the journal of a run in the history has such a line."""

        def has() -> bool:
            found = self.store.runs.glob("*/journal.jsonl")
            return any(f'"kind":"{kind}"' in path.read_text() for path in found)

        quiet = subprocess.DEVNULL
        with subprocess.Popen(self.argv(*words), env={**os.environ, **self.env}, stdout=quiet, stderr=quiet) as process:
            try:
                until(has, f"a line {kind} in a journal")
            finally:
                process.kill()

    def nights(self) -> list[Night]:
        return [event for event in self.store.events()[0] if isinstance(event, Night)]


@pytest.fixture
def house(tfcompare: str, stub_cache: dict[str, str], tmp_path: Path) -> House:
    return House(tfcompare, stub_cache, tmp_path)


@pytest.mark.slow
def test_a_screen_that_was_measured_to_its_end_counts_for_the_next_night_of_the_day(house: House) -> None:
    house.kill_once_it_has("finished", "run")
    assert house.nights() == []
    done = run_command(*house.argv("run"), env=house.env)
    assert done.returncode == 0, done.stderr
    [run] = house.store.runs.iterdir()
    assert f"was measured already (run {run.name}) by a nightly run that was ended" in done.stderr
    assert check_history(house.store.path) == []
    assert "nothing changed" in done.stdout
    assert (run / "report.html").exists()
    skipped = run_command(*house.argv("run"), env=house.env)
    assert f"was measured already (run {run.name}); --again repeats it" in skipped.stderr


@pytest.mark.slow
def test_a_screen_of_another_selection_stays_where_it_is(house: House) -> None:
    house.kill_once_it_has("finished", "run")
    done = run_command(*house.argv("run", case="tick[ms=1]"), env=house.env)
    assert done.returncode == 0, done.stderr
    [left] = check_history(house.store.path)
    assert left.name.endswith("-screen")
    assert len(RunFolder(left).read_plan().cases) > len({point.case for point in house.store.read().points()})


@pytest.mark.slow
def test_a_night_ends_with_the_process_that_waits_for_nights(house: House) -> None:
    # The first call waits for the next night; what was due since then is caught up at once.
    assert run_command(*house.argv("run", "--if-due", "00:00"), env=house.env).returncode == 0
    [marker] = (house.data / "tfcompare").glob("nights-*.json")
    marker.write_text('{"night": "2026-01-01", "asked": "2026-01-01"}')
    house.kill_once_it_has("ended", "serve", "--at", "00:00")
    done = run_command(*house.argv("run"), env=house.env)
    assert done.returncode == 0, done.stderr
    until(lambda: not marked(MARK), "the last process")
    first, second = house.nights()
    assert (first.outcome, first.exit_code, second.outcome) == ("failed", 130, "measured")
    [cut] = check_history(house.store.path)
    assert ended_at(cut) <= begun_at(house.store.runs / second.run)
