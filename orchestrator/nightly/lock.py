"""A lock that permits one nightly run at a time on a machine: two at the same time would disturb each other.

The kernel releases the lock when the last process that has its descriptor ends, however it ends: the process that took
the lock, and those that measure for it. The lock file is in the user's data folder and not in a history, so that all
histories on this machine share it.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from orchestrator import files
from orchestrator.catalog import user_data
from orchestrator.errors import UsageError
from orchestrator.file_lock import try_lock
from orchestrator.terminal.view import View

NIGHT = "night"
# A process that asks for the holder takes the lock for a moment.
PATIENCE_S = 0.5
# A process that waits for another one to end tries again after this time.
TRY_S = 1.0


@dataclass(frozen=True)
class Holder:
    pid: int
    since: datetime
    # This describes what it does, for processes that ask.
    about: str = ""


@contextmanager
def hold(
    folder: Path | None = None,
    name: str = NIGHT,
    about: str = "",
    wait_s: float = 0.0,
    view: View | None = None,
) -> Iterator[int]:
    """Hold the lock and yield its descriptor; raise UsageError if another process still holds it after `wait_s`."""
    path = _path(folder, name)
    with _open(path) as file:
        if not _wait_for_lock(file, PATIENCE_S):
            other = holder(folder, name)
            what = "nightly run" if name == NIGHT else name
            who = f" since {other.since:%Y-%m-%d %H:%M} (pid {other.pid})" if other else ""
            if wait_s:
                (view or View()).say(f"another {what} is in progress here{who}: waiting for its end")
            if not _wait_for_lock(file, wait_s, TRY_S):
                raise UsageError(f"another {what} is in progress here{who}: wait for its end, or end it")
        entry = asdict(Holder(os.getpid(), datetime.now().astimezone().replace(microsecond=0), about))
        os.truncate(file, 0)
        os.pwrite(file, json.dumps(entry, default=datetime.isoformat).encode(), 0)
        try:
            yield file
        finally:
            os.truncate(file, 0)


@contextmanager
def try_hold() -> Iterator[bool]:
    """Hold the lock of nightly runs for a moment; yield False, and hold none, if another process has it."""
    with _open(_path(None, NIGHT)) as file:
        yield _wait_for_lock(file, PATIENCE_S)


def holder(folder: Path | None = None, name: str = NIGHT) -> Holder | None:
    """Return the current holder of the lock, if any."""
    path = _path(folder, name)
    if not path.is_file():
        return None
    deadline = time.monotonic() + PATIENCE_S
    with _open(path) as file:
        while not try_lock(file, shared=True):
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(os.pread(file, 100_000, 0))
                return Holder(int(entry["pid"]), datetime.fromisoformat(entry["since"]), str(entry["about"]))
            # The lock has just been taken, and its holder is not written yet.
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)
    return None


def _path(folder: Path | None, name: str) -> Path:
    # Machines may share a home directory, so each has a separate file.
    return (folder or user_data.folder()) / f"{name}-{socket.gethostname()}.lock"


@contextmanager
def _open(path: Path) -> Iterator[int]:
    with files.writing(path, user_data.REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _wait_for_lock(file: int, patience_s: float, try_s: float = 0.02) -> bool:
    deadline = time.monotonic() + patience_s
    while not try_lock(file):
        if time.monotonic() > deadline:
            return False
        time.sleep(try_s)
    return True
