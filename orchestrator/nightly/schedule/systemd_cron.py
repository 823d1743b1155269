"""The schedulers of a machine, and how tfcompare's entries in them are read, installed and removed."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from orchestrator import files
from orchestrator.catalog import user_data
from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import units as schedule
from orchestrator.nightly.schedule.units import END, UNIT, Planned, Schedule, Torn, Written

SERVICE, TIMER = f"{UNIT}.service", f"{UNIT}.timer"
SYSTEM_UNITS = Path("/etc/systemd/system")
DAEMONS = ("crond.pid", "cron.pid")
TIMEOUT_S = 60


@dataclass(frozen=True)
class Entry:
    """All parts of tfcompare's entry in a scheduler, by place, as they were read; None is a part that is missing."""

    parts: Mapping[str, Written | None]

    @property
    def planned(self) -> Planned | None:
        return next((part.planned for part in self.parts.values() if part and part.planned), None)

    @property
    def edited(self) -> tuple[str, ...]:
        return tuple(place for place, part in self.parts.items() if part and part.edited)

    @property
    def gone(self) -> tuple[str, ...]:
        return tuple(place for place, part in self.parts.items() if part is None)


class Scheduler(Protocol):
    name: str
    # Of whom it is, in the words of a person.
    title: str

    def obstacle(self) -> str:
        """Return why this scheduler cannot be used here, or ''."""

    def drawn(self, wanted: Schedule) -> dict[str, str]:
        """Return what `install` would write, by place."""

    def notes(self) -> tuple[str, ...]:
        """Return what users need to know about this scheduler on this machine."""

    def entry(self) -> Entry | None: ...

    def install(self, wanted: Schedule) -> None:
        """Install a schedule in place of an earlier one.

        If that fails, raise UsageError and leave nothing of the new one behind.
        """

    def uninstall(self) -> None: ...


class Systemd:
    """The systemd manager of a user or of the system."""

    def __init__(self, *, system: bool) -> None:
        self._system = system
        self.name = "systemd"
        self.title = "systemd of the system" if system else f"systemd of {_user()}"

    @property
    def folder(self) -> Path:
        if self._system:
            return SYSTEM_UNITS
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"

    def obstacle(self) -> str:
        if not shutil.which("systemctl"):
            return "there is no systemctl"
        # Answered whatever state units are in, unlike `is-system-running`.
        done = self._systemctl("show-environment")
        return f"{self.title} does not answer ({_said(done)})" if done.returncode else ""

    def drawn(self, wanted: Schedule) -> dict[str, str]:
        units = schedule.units(wanted, system=self._system)
        return {str(self.folder / name): text for name, text in units.items()}

    def notes(self) -> tuple[str, ...]:
        if self._system:
            return ()
        done = _run("loginctl", "show-user", _user(), "--property=Linger", "--value")
        if done.returncode == 0 and done.stdout.decode(errors="replace").strip() == "yes":
            return ()
        return (f"these run only while {_user()} is logged in, until you call `loginctl enable-linger {_user()}`",)

    def entry(self) -> Entry | None:
        parts = {str(self.folder / name): _written(self.folder / name) for name in (TIMER, SERVICE)}
        return Entry(parts) if any(parts.values()) else None

    def install(self, wanted: Schedule) -> None:
        try:
            for place, text in self.drawn(wanted).items():
                _write(Path(place), text, 0o600)
            self._ask("daemon-reload")
            self._ask("enable", TIMER)
            # One that runs already keeps its old time until it is started anew.
            self._ask("restart", TIMER)
        except UsageError:
            with suppress(UsageError):
                self.uninstall()
            raise

    def uninstall(self) -> None:
        self._systemctl("disable", "--now", TIMER)
        # When it last ran is kept beyond the timer, and would make a later one catch up at once.
        self._systemctl("clean", "--what=state", TIMER)
        # The last is what `disable` removes, where a manager answers.
        for name in (TIMER, SERVICE, f"timers.target.wants/{TIMER}"):
            _remove(self.folder / name)
        self._systemctl("daemon-reload")

    def _ask(self, *words: str) -> None:
        done = self._systemctl(*words)
        if done.returncode:
            raise UsageError(f"systemctl {' '.join(words)}: {_said(done)}; --scheduler cron takes the crontab instead")

    def _systemctl(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return _run("systemctl", *([] if self._system else ["--user"]), *words)


class Cron:
    """The crontab of the current user, and the script that it runs."""

    def __init__(self) -> None:
        self.name = "cron"
        self.title = f"cron of {_user()}"

    @property
    def script(self) -> Path:
        return user_data.folder() / "nightly.sh"

    @property
    def begun(self) -> Path:
        return user_data.folder() / "nightly.begun"

    @property
    def place(self) -> str:
        return f"the crontab of {_user()}"

    def obstacle(self) -> str:
        if not shutil.which("crontab"):
            return "there is no crontab"
        try:
            self._table()
        except UsageError as error:
            return str(error)
        return ""

    def drawn(self, wanted: Schedule) -> dict[str, str]:
        return {
            str(self.script): schedule.script(wanted, self.begun),
            self.place: schedule.cron_lines(wanted.planned, self.script),
        }

    def notes(self) -> tuple[str, ...]:
        if any((Path("/run") / name).exists() for name in DAEMONS):
            return ()
        return ("no cron daemon seems to run here, so nothing will call this until one does",)

    def entry(self) -> Entry | None:
        found = _written(self.script)
        if not shutil.which("crontab"):
            return Entry({str(self.script): found}) if found else None
        part = self._parts()[1]
        if not part and not found:
            return None
        lines = schedule.read(part.removesuffix(END)) if part else None
        return Entry({self.place: lines, str(self.script): found})

    def install(self, wanted: Schedule) -> None:
        before, part, after = self._parts()
        drawn = self.drawn(wanted)
        # The night whose time came last is not one that was missed.
        at = schedule.time_of_day(wanted.planned.at)
        _write(self.begun, f"{schedule.due(datetime.now(), at)}\n", 0o600)
        try:
            _write(self.script, drawn[str(self.script)], 0o700)
            self._settle(before + drawn[self.place] + after)
        except UsageError:
            if not part:
                _remove(self.script)
                _remove(self.begun)
            raise

    def uninstall(self) -> None:
        if shutil.which("crontab"):
            before, part, after = self._parts()
            if part:
                self._settle(before + after)
        _remove(self.script)
        _remove(self.begun)

    def _parts(self) -> tuple[str, str, str]:
        try:
            return schedule.own_part(self._table())
        except Torn as error:
            raise UsageError(
                f"{self.place} holds one of the two marks of tfcompare's lines ({UNIT}) and not the other: "
                "somebody removed it. Remove what is left by `crontab -e`"
            ) from error

    def _table(self) -> str:
        done = _run("crontab", "-l")
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "surrogateescape")
        if b"no crontab for" in done.stderr:
            return ""
        raise UsageError(f"crontab -l: {_said(done)}")

    def _settle(self, table: str) -> None:
        # Without any line it is as if there had never been one.
        words = ("crontab", "-") if table else ("crontab", "-r")
        done = _run(*words, given=table.encode("utf-8", "surrogateescape"))
        if done.returncode:
            raise UsageError(f"{' '.join(words)}: {_said(done)}; the crontab is as it was")


def named(name: str | None) -> Scheduler:
    """Return the requested scheduler, or else the first that answers here; raise UsageError if there is none."""
    known: dict[str, Callable[[], Scheduler]] = {"systemd": _systemd, "cron": Cron}
    if name is not None and name not in known:
        raise UsageError(f"--scheduler {name!r}: it is {' or '.join(known)}")
    refused = []
    for key in [name] if name else known:
        found = known[key]()
        if not (why := found.obstacle()):
            return found
        refused.append(why)
    raise UsageError(
        f"nothing here can call tfcompare every night: {'; '.join(refused)}. "
        "`tfcompare nightly serve` waits by itself, in a container or a terminal that stays open"
    )


def every() -> tuple[Scheduler, ...]:
    return Systemd(system=False), Systemd(system=True), Cron()


def _systemd() -> Scheduler:
    return Systemd(system=os.getuid() == 0)


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _run(*words: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    # Some of what these say is understood here, and must not be said in another language.
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(words, input=given, capture_output=True, env=environment, timeout=TIMEOUT_S)
    except OSError as error:
        return subprocess.CompletedProcess(words, 127, b"", (error.strerror or "").encode())
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, b"", f"no answer within {TIMEOUT_S} s".encode())


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    text = (done.stderr or done.stdout).decode(errors="replace").strip()
    return " ".join(text.split()) or f"exit code {done.returncode}"


def _written(path: Path) -> Written | None:
    try:
        return schedule.read(path.read_text(errors="surrogateescape"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _write(path: Path, text: str, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, text.encode("utf-8", "surrogateescape"), mode)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; another --scheduler may do") from error


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be removed: {error.strerror}; whoever installed it can") from error
