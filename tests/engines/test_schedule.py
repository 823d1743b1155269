"""The real crontab, a real cron that calls, and systemd's own reading of its units. No systemd runs where these tests
were written: what a manager does with the units is left to its own word for them."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.nightly.schedule import units as schedule
from orchestrator.nightly.schedule.cron import Cron
from tests.conftest import run_command
from tests.support.commands import called
from tests.support.schedules import wanted

FLAGS = ("--versions", "2.13,1.14", "--suite", "studies")
OTHERS = "# mine\nMAILTO=''\n0 5 31 2 * echo 100\\% 'caf\u00e9'\n\n"
# What a test starts ends with it even if pytest itself is killed.
TIED = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
CRON_PID = Path("/run/crond.pid")


def table() -> bytes | None:
    done = subprocess.run(["crontab", "-l"], capture_output=True)
    return done.stdout if done.returncode == 0 else None


def settle(content: bytes | None) -> None:
    words = ["crontab", "-r"] if content is None else ["crontab", "-"]
    subprocess.run(words, input=content, capture_output=True)


@pytest.fixture
def crontab(monkeypatch, tmp_path) -> Iterator[Callable[[bytes | None], None]]:
    """Sets the crontab; whatever was in it comes back."""
    if not shutil.which("crontab"):
        pytest.skip("no crontab: apt-get install cron")
    before = table()
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "it's 100% mine"))
    monkeypatch.delenv("TFCOMPARE_HISTORY", raising=False)
    try:
        yield settle
    finally:
        settle(before)


@pytest.mark.parametrize("before", [None, OTHERS.encode(), OTHERS.encode() + b"# \xff\xfe\n"])
def test_a_crontab_is_byte_by_byte_what_it_was_once_the_entry_is_gone(
    crontab, monkeypatch, capsys, before: bytes | None
):
    crontab(before)
    argv = ("nightly", "install", "--scheduler", "cron", "--at", "02:00", *FLAGS)
    assert called(monkeypatch, *argv) == 2
    assert table() == before
    for at in ("02:00", "04:45"):
        assert called(monkeypatch, *argv, "--at", at, "--yes") == 0, capsys.readouterr().err
        there = table()
        assert there is not None
        assert there.startswith(before or b"")
        assert there.count(b"\n0,15,30,45 * * * * /bin/sh ") == 1
    capsys.readouterr()
    called(monkeypatch, "nightly", "status")
    assert "every night at 04:45, by cron of " in capsys.readouterr().out
    assert called(monkeypatch, "nightly", "uninstall") == 0
    assert table() == before
    capsys.readouterr()
    assert called(monkeypatch, "nightly", "uninstall") == 0
    assert capsys.readouterr().out == "nothing was scheduled here\n"


@pytest.fixture
def cron() -> Iterator[None]:
    """A cron daemon: the machine's own, or one for as long as the test takes."""
    if not shutil.which("cron"):
        pytest.skip("no cron: apt-get install cron")
    try:
        os.kill(int(CRON_PID.read_text()), 0)
    except (OSError, ValueError):
        if os.getuid() != 0:
            pytest.skip("no running cron: starting one takes root")
        process = subprocess.Popen([*TIED, "cron", "-f"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # It tells a crontab that has changed by the second.
        time.sleep(2)
        yield
        process.kill()
        process.wait()
        CRON_PID.unlink(missing_ok=True)
    else:
        yield


def test_cron_calls_it_at_its_time_with_its_words_and_its_environment(crontab, cron, tmp_path):
    """Takes up to a minute and a half, of a real clock."""
    crontab(b"")
    folder = tmp_path / "it's 100% there"
    folder.mkdir()
    program = folder / "program"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/words"\nenv > "{folder}/env"\necho said\n')
    program.chmod(0o755)
    at = datetime.now() + timedelta(seconds=65)
    odd = "power[a='b' %c $HOME]"
    planned = wanted(
        (str(program),),
        at=f"{at:%H:%M}",
        flags=("--case", odd),
        history=str(folder / "history"),
        folder=folder,
        environment={"PATH": os.environ["PATH"], "TFCOMPARE_HISTORY": str(folder / "history")},
    )
    Cron().install(planned)
    log = folder / "history" / "log"
    deadline = time.monotonic() + 150
    while not (log.is_dir() and any(path.read_text() for path in log.iterdir())):
        assert time.monotonic() < deadline, "cron did not call it"
        time.sleep(0.5)
    words = (folder / "words").read_text().splitlines()
    assert words == ["nightly", "run", "--case", odd, "--if-due", f"{at:%H:%M}", "--missed", "catch-up"]
    variables = (folder / "env").read_text().splitlines()
    assert f"PATH={os.environ['PATH']}" in variables
    assert f"TFCOMPARE_HISTORY={folder / 'history'}" in variables
    [path] = log.iterdir()
    assert path.read_text() == "said\n"


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if not found:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    return found


@pytest.mark.parametrize("system", [True, False])
@pytest.mark.parametrize("name", ["it's 100% there", 'a "b" $c', "a\\nb", "-\u00e4 #;="])
def test_systemd_reads_the_units_without_a_complaint(analyze: str, tmp_path, name: str, system: bool):
    folder = tmp_path / name
    folder.mkdir()
    program = folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = wanted(
        (str(program),),
        flags=("--case", "power[a='b' %c $HOME]", "--notify", 'json://"${WHO}"\\@here'),
        folder=folder,
        env_file=tmp_path / name.replace("\\", "") / "variables",
        environment={"PATH": os.environ["PATH"], "ODD": 'a "b" %h $c\\', "LINES": "a\nb\tc"},
    )
    units = schedule.units(made, system=system)
    places = [tmp_path / name for name in units]
    for place, text in zip(places, units.values(), strict=True):
        place.write_text(text)
    # Other units of the machine may be complained of.
    done = run_command(
        analyze, *([] if system else ["--user"]), "verify", *places, env={"XDG_RUNTIME_DIR": str(tmp_path)}
    )
    about_ours = [line for line in (done.stdout + done.stderr).splitlines() if "tfcompare" in line]
    assert about_ours == []
    broken = places[0].read_text().replace("RuntimeMaxSec=", "RuntimeMaxSec=x")
    places[0].write_text(broken)
    done = run_command(
        analyze, *([] if system else ["--user"]), "verify", *places, env={"XDG_RUNTIME_DIR": str(tmp_path)}
    )
    assert "tfcompare-nightly.service" in done.stderr


def test_systemd_reads_the_time_as_it_was_meant(analyze: str):
    timer = schedule.units(wanted(at="02:30"), system=True)["tfcompare-nightly.timer"]
    [calendar] = [line.partition("=")[2] for line in timer.splitlines() if line.startswith("OnCalendar=")]
    words = ("calendar", "--iterations", "4", "--base-time", "2026-11-03 12:00", calendar)
    done = run_command(analyze, *words, env={"TZ": "UTC"})
    assert done.returncode == 0, done.stderr
    for minute in (15, 30, 45):
        assert f"2026-11-03 12:{minute}:00" in done.stdout
