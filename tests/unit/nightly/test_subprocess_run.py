"""Processes that tfcompare starts: what they import, and what they are given."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator import child_process
from orchestrator.catalog import package_index
from orchestrator.cli.nightly import schedule
from orchestrator.engines.venv import engine as venv
from orchestrator.engines.venv import interpreters
from orchestrator.errors import UsageError
from orchestrator.nightly import lock, subprocess_run
from orchestrator.nightly.subprocess_run import Child
from orchestrator.terminal.view import View
from tests.support.heard import Heard, Listener
from tests.support.processes import read_pids, wait_for_end
from tests.support.schedules import wanted

INTRUDERS = ("typer", "rich", "numpy", "docker", "orchestrator")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files that pose as modules and leave a mark when they are imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    mark = tmp_path / "imported"
    for name in (*INTRUDERS, "pip", "venv", "ensurepip"):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(folder)
    return mark


def test_a_night_imports_nothing_from_the_working_directory(hostile: Path, tmp_path: Path):
    said: list[str] = []
    ended = Child(tmp_path / "log", 60, Heard(said)).run(["run", "--versions", "2.13,2.133", "--dry-run"])
    assert not hostile.exists()
    # It was tfcompare that answered.
    assert ended.exit_code == UsageError.exit_code
    assert "unknown version '2.133'" in ended.last_lines


def test_a_schedule_without_an_installed_program_starts_python_in_the_same_way(hostile: Path, monkeypatch):
    monkeypatch.setattr(schedule.sys, "executable", str(hostile.parent / "bin" / "python"))
    assert schedule._program() == child_process.PROGRAM
    done = subprocess.run([*wanted(child_process.PROGRAM).program, "--help"], capture_output=True, text=True)
    assert (done.returncode, hostile.exists()) == (0, False)
    assert "nightly" in done.stdout


def test_an_interpreter_is_looked_at_without_what_lies_around(hostile: Path):
    interpreters.probe.cache_clear()
    found = interpreters.probe(Path(child_process.PROGRAM[0]).resolve())
    assert isinstance(found, interpreters.Interpreter)
    assert not hostile.exists()


def test_pip_is_asked_without_what_lies_around(hostile: Path, monkeypatch):
    asked: list[list[str]] = []
    run = subprocess.run

    def version_only(words: list[str], **given: Any) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return run([*words[: words.index("pip") + 1], "--version"], **given)

    monkeypatch.setattr(package_index.subprocess, "run", version_only)
    assert package_index.list_releases("tf-nightly", "3.11") == []
    assert asked
    assert not hostile.exists()


def test_an_environment_is_built_without_what_lies_around(monkeypatch, tmp_path: Path):
    commands: list[list[str]] = []
    monkeypatch.setattr(venv.VenvEngine, "_run", lambda self, version, argv, asking, log: commands.append(argv))
    monkeypatch.setattr(venv.lockfile, "check_locks", lambda *locks: None)
    monkeypatch.setattr(venv, "build_errors", SimpleNamespace(of_install=lambda *said, **more: ""))
    for name in ("pip", "x"):
        (tmp_path / f"{name}.lock").write_text("")
    flavour: Any = SimpleNamespace(pip_lock=tmp_path / "pip.lock", lock=tmp_path / "x.lock", wheel=None)
    engine: Any = venv.VenvEngine(venv.EngineOptions())
    version: Any = SimpleNamespace(number="2.13.0")
    made = tmp_path / "made"
    made.mkdir()
    monkeypatch.setattr(venv.shutil, "rmtree", lambda *path, **more: None)
    engine._build(version, flavour, interpreters.Interpreter(Path("/usr/bin/python3"), "3.11.0", "/usr"), made, None)
    engine.close()
    assert len(commands) == 3
    assert {command[1] for command in commands} == {"-I"}


def test_variables_reach_it_and_stay_out_of_its_arguments(tmp_path: Path, monkeypatch):
    shows = "import json, os, sys; print(json.dumps([sys.argv, os.environ['TFCOMPARE_INDEX_URL']]), file=sys.stderr)"
    monkeypatch.setattr(subprocess_run, "BOUND_PROGRAM", (child_process.PROGRAM[0], "-P", "-c", shows))
    monkeypatch.setenv("TFCOMPARE_INDEX_URL", "https://of.the.shell/simple")
    secret = {"TFCOMPARE_INDEX_URL": "https://me:planted@mirror/simple"}
    ended = Child(tmp_path / "log", 60, View(), secret).run(["run"])
    argv, url = json.loads(ended.last_lines)
    assert (argv, url) == (["-c", "run"], secret["TFCOMPARE_INDEX_URL"])


# More than a pipe holds.
TALKS = "import sys\nfor i in range(4000): print('x' * 60, file=sys.stderr, flush=True)"


def test_a_night_goes_on_when_nobody_listens_any_more(tmp_path: Path, monkeypatch):
    def say(text: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(subprocess_run, "BOUND_PROGRAM", (sys.executable, "-c", TALKS))
    ended = Child(tmp_path / "log", 30, Listener(say)).run([])
    assert (ended.exit_code, ended.hung) == (0, False)
    assert len((tmp_path / "log").read_text().splitlines()) == 4000


def test_a_night_goes_on_when_its_log_is_full_and_says_so_once(tmp_path: Path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(subprocess_run, "BOUND_PROGRAM", (sys.executable, "-c", TALKS))
    log = tmp_path / "log"
    log.symlink_to("/dev/full")
    ended = Child(log, 30, Heard(said)).run([])
    assert (ended.exit_code, ended.hung) == (0, False)
    assert len(said) == 4001
    assert said[0] == f"{log} is not complete: No space left on device"


# A nightly run whose measuring is this program.
NIGHT = """
import sys
from pathlib import Path
from orchestrator import child_process
from orchestrator.nightly import lock, subprocess_run
*python, program = subprocess_run.BOUND_PROGRAM
subprocess_run.BOUND_PROGRAM = (*python, program.replace(child_process.PROGRAM[-1], sys.argv[2]))
with lock.hold(Path(sys.argv[1])) as held:
    subprocess_run.Child(Path(sys.argv[1]) / "log", 600, print, lock=held).run([])
"""
# It obeys no signal but the one that kills; the program that it starts outlives it.
DEAF = """
import os, signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
started = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(os.getpid(), started.pid, sep=chr(10), file=open({!r}, "w"))
time.sleep(600)
"""


def test_what_measures_holds_the_lock_of_a_night_that_was_killed_and_what_it_starts_does_not(tmp_path: Path):
    night = subprocess.Popen([sys.executable, "-c", NIGHT, str(tmp_path), DEAF.format(str(tmp_path / "pids"))])
    measuring, started = read_pids(tmp_path / "pids", 2)
    try:
        night.kill()
        night.wait()
        refused = pytest.raises(
            UsageError, match=rf"another nightly run is in progress here since .* \(pid {night.pid}\)"
        )
        with refused, lock.hold(tmp_path):
            pass
        os.kill(measuring, signal.SIGKILL)
        wait_for_end(measuring)
        with lock.hold(tmp_path):
            pass
    finally:
        os.kill(started, signal.SIGKILL)


def test_what_measures_ends_with_a_night_that_was_killed(tmp_path: Path):
    program = f"import os, time; print(os.getpid(), file=open({str(tmp_path / 'pids')!r}, 'w')); time.sleep(600)"
    night = subprocess.Popen([sys.executable, "-c", NIGHT, str(tmp_path), program])
    measuring = read_pids(tmp_path / "pids")
    night.kill()
    night.wait()
    wait_for_end(*measuring)
    assert lock.holder(tmp_path) is None
