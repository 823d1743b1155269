"""Two makes at once in one clone set up one environment, and one that is killed leaves nothing that blocks the next."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT

PATIENCE_S = 120
# Stands for the Python that makes the environment: notes when it begins, and waits for permission.
PYTHON = """#!/bin/sh
case "$1 $2" in "-m venv")
    echo begin >> noted
    while [ ! -e go ]; do sleep 0.05; done
    if ! {python} "$@"; then exit 1; fi
    echo end >> noted
    exit ;;
esac
exec {python} "$@"
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a clone has of the set-up, with nothing to install."""
    for name in ("Makefile", "tools/alone.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("requirements/build.txt", "requirements/run.txt", "requirements/dev.txt", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "slow").write_text(PYTHON.format(python=sys.executable))
    (tmp_path / "slow").chmod(0o755)
    return tmp_path


@contextmanager
def make(clone: Path, name: str) -> Iterator["subprocess.Popen[bytes]"]:
    words = ["make", ".venv/dev", "PYTHON=./slow", "PIP=echo installed >> noted; true"]
    with (clone / name).open("wb") as output:
        process = subprocess.Popen(words, cwd=clone, stdout=output, stderr=output, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def noted(clone: Path) -> list[str]:
    return (clone / "noted").read_text().split() if (clone / "noted").exists() else []


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_two_at_once_make_one_environment(clone: Path):
    with make(clone, "first") as first:
        until(lambda: noted(clone))
        with make(clone, "second") as second:
            until(lambda: "another make is at work here" in (clone / "second").read_text() or len(noted(clone)) > 1)
            (clone / "go").touch()
            assert (first.wait(PATIENCE_S), second.wait(PATIENCE_S)) == (0, 0)
    assert noted(clone) == ["begin", "end", *["installed"] * 4]
    assert subprocess.run([clone / ".venv" / "bin" / "python", "-c", ""]).returncode == 0
    with make(clone, "third") as third:
        assert third.wait(PATIENCE_S) == 0
    assert len(noted(clone)) == 6
    (clone / "requirements" / "dev.txt").touch()
    with make(clone, "fourth") as fourth:
        assert fourth.wait(PATIENCE_S) == 0
    assert len(noted(clone)) == 7


@pytest.mark.slow
def test_one_that_is_killed_leaves_the_next_to_begin_again(clone: Path):
    with make(clone, "first") as first:
        until(lambda: noted(clone))
        os.killpg(first.pid, signal.SIGKILL)
    (clone / "go").touch()
    with make(clone, "second") as second:
        assert second.wait(PATIENCE_S) == 0
    assert noted(clone) == ["begin", "begin", "end", *["installed"] * 4]


def test_a_command_that_fails_leaves_no_target(tmp_path: Path):
    (tmp_path / "Makefile").touch()
    words = [sys.executable, ROOT / "tools" / "alone.py", "target", "--", "exit 3", "touch never"]
    assert subprocess.run(words, cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Makefile"]
