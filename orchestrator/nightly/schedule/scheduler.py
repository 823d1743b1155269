"""What every scheduler of a machine has to do, and how its programs are called."""

import os
import pwd
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import units as schedule
from orchestrator.nightly.schedule.units import Planned, Schedule, Written

TIMEOUT_S = 60


@dataclass(frozen=True)
class SchedulerEntry:
    """All parts of tfcompare's entry in a scheduler, by place, as they were read; None is a part that is missing."""

    parts: Mapping[str, Written | None]

    @property
    def planned(self) -> Planned | None:
        return next((part.planned for part in self.parts.values() if part and part.planned), None)

    @property
    def edited(self) -> tuple[str, ...]:
        return tuple(where for where, part in self.parts.items() if part and part.edited)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(where for where, part in self.parts.items() if part is None)


class Scheduler(Protocol):
    name: str
    # Of whom it is, in the words of a person.
    title: str

    def obstacle(self) -> str:
        """Return why this scheduler cannot be used here, or ''."""

    def render_files(self, wanted: Schedule) -> dict[str, str]:
        """Return what `install` would write, by place."""

    def notes(self) -> tuple[str, ...]:
        """Return what users need to know about this scheduler on this machine."""

    def entry(self) -> SchedulerEntry | None: ...

    def install(self, wanted: Schedule) -> None:
        """Install a schedule in place of an earlier one.

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


def read_crontab(path: Path) -> Written | None:
    try:
        return schedule.read_entry(path.read_text(errors="surrogateescape"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def write_part(path: Path, text: str, mode: int) -> None:
    with files.writing(path, "another --scheduler may do"):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, text.encode("utf-8", "surrogateescape"), mode)


def remove_part(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be removed: {error.strerror}; its owner can remove it") from error
