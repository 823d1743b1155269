"""Commands that are going on while a test does something to them or to what they need."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE_S = 120.0


def until(condition: Callable[[], object], process: "subprocess.Popen[str]") -> None:
    """Wait until something is so, while the command still runs."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    raise AssertionError("it did not come to that")


def kinds(run: Path, kind: str) -> int:
    """How many lines of this kind the journal has."""
    journal = run / "journal.jsonl"
    return journal.read_text().count(f'"kind":"{kind}"') if journal.exists() else 0


def mount(folder: Path, *what: str) -> Path:
    """Mount something on a folder, which whoever calls this unmounts; skip where that is not allowed."""
    done = subprocess.run(["mount", *what, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to mount: {done.stderr.strip()}")
    return folder


def mount_read_only(folder: Path) -> None:
    """Let a folder be read-only for all that is opened from now on, as one is whose disk has failed."""
    mount(folder, "--bind", str(folder))
    subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
