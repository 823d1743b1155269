"""The interface of the schedulers of a machine, and how their programs are called."""

import os
import pwd
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.nightly.schedule.units import MARK, PlannedSchedule, Schedule, read_marker

TIMEOUT_S = 60


@dataclass(frozen=True)
class SchedulerEntry:
    """The texts of tfcompare's entry in a scheduler, by place; the text of a missing one is ''."""

    parts: Mapping[str, str]

    @property
    def planned(self) -> PlannedSchedule | None:
        return next(filter(None, map(read_marker, self.parts.values())), None)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(where for where, part in self.parts.items() if not part)


class Scheduler(Protocol):
    name: str
    # This names the scheduler and its owner in messages.
    title: str

    def obstacle(self) -> str:
        """Return why this scheduler cannot be used here, or ''."""

    def render_files(self, wanted: Schedule) -> dict[str, str]:
        """Return what `install` would write, by place."""

    def notes(self) -> tuple[str, ...]:
        """Return what users need to know about this scheduler on this machine."""

    def entry(self) -> SchedulerEntry | None: ...

    def install(self, wanted: Schedule) -> list[Path]:
        """Install a schedule, and return the copies of other files that were in its places.

        If that fails, raise UsageError and leave nothing of the new one behind.
        """

    def uninstall(self) -> None: ...


def user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def run_tool(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    # Some of what these tools print is parsed here, so it must not be in another language.
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(words, input=stdin, capture_output=True, env=environment, timeout=TIMEOUT_S)
    except OSError as error:
        return subprocess.CompletedProcess(words, 127, b"", (error.strerror or "").encode())
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, b"", f"no answer within {TIMEOUT_S} s".encode())


def output_of(done: subprocess.CompletedProcess[bytes]) -> str:
    text = (done.stderr or done.stdout).decode(errors="replace").strip()
    return " ".join(text.split()) or f"exit code {done.returncode}"


def read_part(path: Path) -> str:
    """Return a file that tfcompare wrote, or '' if there is none."""
    try:
        text = path.read_text(errors="surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    return text if MARK in text else ""


def write_part(path: Path, text: str, mode: int) -> list[Path]:
    """Write a file; another one of this name, which may have been edited, is kept as FILE.bak and returned."""
    data, kept = text.encode("utf-8", "surrogateescape"), path.with_name(f"{path.name}.bak")
    with files.writing(path, "another --scheduler may work"):
        path.parent.mkdir(parents=True, exist_ok=True)
        old = path.read_bytes() if path.exists() else data
        if old != data:
            files.write_atomically(kept, old, 0o600)
        files.write_atomically(path, data, mode)
    return [kept] if old != data else []


def remove_part(path: Path) -> None:
    """Remove a file that tfcompare wrote, and no other."""
    if read_part(path):
        try:
            path.unlink()
        except OSError as error:
            raise UsageError(f"{path}: cannot be removed: {error.strerror}; its owner can remove it") from error
