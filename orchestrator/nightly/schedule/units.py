"""The text of the files that schedulers need: systemd units, or a script and a line for cron.

All of them check every 15 minutes whether a nightly run is due. This module has no side effects.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import StringConstraints, TypeAdapter, ValidationError

from orchestrator.catalog.version import FlavourName
from orchestrator.errors import UsageError
from orchestrator.nightly.due import INTERVAL, DueNights, Missed, time_of_day

UNIT = "tfcompare-nightly"
MARK = f"# {UNIT} "
END = f"# {UNIT}: end\n"
WRITTEN = "# Written by `tfcompare nightly install`; `tfcompare nightly uninstall` removes it.\n"
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# A path in a unit extends to the end of its line, where spaces are dropped and a backslash continues the line.
UNREADABLE = re.compile(rf"{CONTROL.pattern}|[ \\]$")
# systemd reads the name of a file of variables as a pattern.
PATTERN = re.compile(rf"{UNREADABLE.pattern}|[*?[\\]")
PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
# A nightly run stops measuring at its limit and then judges; if it still runs after this, it hangs.
HARD_LIMIT_S = 1800
POLITE_S = 120
EVERY_MIN = INTERVAL // timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class PlannedSchedule:
    """The facts that are stored with a scheduler's entry and read back from it."""

    at: str
    missed: Missed
    # These are the flags of `tfcompare nightly run`.
    flags: tuple[str, ...]
    history: str
    host: str
    since: datetime
    # This is the time zone of `at`, or '' for that of the machine.
    zone: str
    device: FlavourName
    # This is part of the name of the file that records which night began last.
    nights: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]+$")]

    @property
    def due(self) -> DueNights:
        return DueNights(self.nights, time_of_day(self.at), self.missed)

    @property
    def tz(self) -> ZoneInfo | None:
        return ZoneInfo(self.zone) if self.zone in available_timezones() else None


@dataclass(frozen=True, kw_only=True)
class Schedule:
    planned: PlannedSchedule
    program: tuple[str, ...]
    environment: Mapping[str, str]
    # Relative paths among the flags start here.
    folder: Path
    env_file: Path | None
    limit_s: float
    # These variables must not be in any file or argument, so only `serve` can pass them on to a nightly run.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def command(self) -> tuple[str, ...]:
        rule = ("--if-due", self.planned.at, "--missed", self.planned.missed)
        return (*self.program, "nightly", "run", *self.planned.flags, *rule)

    @property
    def hard_limit_s(self) -> int:
        return round(self.limit_s) + HARD_LIMIT_S


def zone(variable: str | None) -> str:
    """Return the name of the zone that TZ asks for, or '' for that of the machine."""
    if variable is None or variable.lstrip(":") == "/etc/localtime":
        return ""
    name = variable.lstrip(":").removeprefix("/usr/share/zoneinfo/") or "UTC"
    if name not in available_timezones():
        raise UsageError(f"TZ={variable!r}: unknown time zone. Name one such as Europe/Berlin, or unset TZ")
    return name


def units(schedule: Schedule, *, system: bool) -> dict[str, str]:
    """Return the service and the timer, by name."""
    planned = schedule.planned
    # A user's manager does not know the units of the system.
    after = "Wants=network-online.target\nAfter=network-online.target docker.service\n" if system else ""
    variables = "".join(
        f"Environment={_quote(f'{name}={value}')}\n" for name, value in sorted(schedule.environment.items())
    )
    env_file = f"EnvironmentFile={_check_path(schedule.env_file, PATTERN)}\n" if schedule.env_file else ""
    # systemd accepts no program with a quote in its name, even if it is escaped.
    through = () if PLAIN.fullmatch(schedule.program[0]) else ("/usr/bin/env",)
    command = " ".join(_quote(word).replace("$", "$$") for word in (*through, *schedule.command))
    service = (
        f"[Unit]\nDescription=tfcompare nightly run\n{after}"
        f"\n[Service]\nType=exec\nWorkingDirectory={_check_path(schedule.folder)}\n{variables}{env_file}"
        f"ExecStart={command}\n"
        # Only tfcompare itself knows what it has to free, so only it is asked to end.
        f"KillMode=mixed\nRuntimeMaxSec={schedule.hard_limit_s}\nTimeoutStopSec={POLITE_S}\n"
    )
    timer = (
        "[Unit]\nDescription=tfcompare measures every night\n"
        f"\n[Timer]\nOnCalendar=*:{_first_minute(planned)}/{EVERY_MIN}\nAccuracySec=1s\n"
        "\n[Install]\nWantedBy=timers.target\n"
    )
    return {f"{UNIT}.service": add_marker(service, planned), f"{UNIT}.timer": add_marker(timer, planned)}


def _quote(word: str) -> str:
    if PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    escaped = CONTROL.sub(lambda character: f"\\x{ord(character[0]):02x}", escaped)
    return f'"{_percents(escaped)}"'


def _check_path(path: Path, refused: re.Pattern[str] = UNREADABLE) -> str:
    """Return a path as systemd reads it: up to the end of the line, without quotes and escapes."""
    if match := refused.search(str(path)):
        raise UsageError(
            f"{str(path)!r}: systemd cannot read this name because of its {match[0]!r}; rename it, or use "
            "--scheduler cron"
        )
    return _percents(str(path))


def _percents(text: str) -> str:
    return text.replace("%", "%%")


def _first_minute(planned: PlannedSchedule) -> int:
    """Return the minute of an hour at which to ask first, so that a night begins at its time in every time zone."""
    return time_of_day(planned.at).minute % EVERY_MIN


def script(schedule: Schedule) -> str:
    """Return the script that cron calls.

    A script is needed because cron provides hardly any environment, cuts off long lines, and ends a line at a %.
    """
    log = Path(schedule.planned.history) / "log"
    lines = [f"cd {_shell(schedule.folder)} || exit"]
    lines += [f"export {name}={_shell(value)}" for name, value in sorted(schedule.environment.items())]
    if schedule.env_file:
        lines += ["set -a", f". {_shell(schedule.env_file)}", "set +a"]
    lines += [
        f"mkdir -p {_shell(log)}",
        f"exec timeout --kill-after={POLITE_S} {schedule.hard_limit_s} \\",
        f"    {shlex.join(schedule.command)} \\",
        f'    >> {_shell(log)}/"nightly-$(date +%F).log" 2>&1',
    ]
    return "#!/bin/sh\n" + add_marker("\n".join(lines) + "\n", schedule.planned)


def _shell(value: Path | str) -> str:
    return shlex.quote(str(value))


def cron_lines(planned: PlannedSchedule, called: Path) -> str:
    """Return the lines for a crontab, between two marks."""
    # Implementations of cron differ in how they read a backslash before a % or another backslash.
    if match := re.search(rf"{CONTROL.pattern}|\\", str(called)):
        raise UsageError(
            f"{str(called)!r}: cron cannot read this name because of its {match[0]!r}; set TFCOMPARE_DATA to another "
            "folder"
        )
    command = f"/bin/sh {_shell(called)}".replace("%", "\\%")
    minutes = ",".join(map(str, range(_first_minute(planned), 60, EVERY_MIN)))
    return add_marker(f"{minutes} * * * * {command}\n", planned) + END


def add_marker(body: str, planned: PlannedSchedule) -> str:
    return f"{MARK}{as_text(planned)}\n{WRITTEN}{body}"


def read_marker(text: str) -> PlannedSchedule | None:
    """Return the facts in a unit, a script, or the part of a crontab between the marks."""
    return from_text(text.partition(MARK)[2].partition("\n")[0])


def as_text(planned: PlannedSchedule) -> str:
    return json.dumps(_type_of_planned().dump_python(planned, mode="json"))


def from_text(text: str) -> PlannedSchedule | None:
    try:
        return _type_of_planned().validate_python(json.loads(text))
    except (ValueError, ValidationError):
        return None


def _type_of_planned() -> TypeAdapter[PlannedSchedule]:
    return TypeAdapter(PlannedSchedule)


class BrokenMarks(Exception):
    """A crontab in which one of tfcompare's marks is missing."""


def own_part(table: str) -> tuple[str, str, str]:
    """Split a crontab into the parts before, between and after tfcompare's marks."""
    begin = 0 if table.startswith(MARK) else table.find("\n" + MARK) + 1
    if begin == 0 and not table.startswith(MARK):
        if END in table:
            raise BrokenMarks
        return table, "", ""
    end = table.find(END, begin)
    if end < 0:
        raise BrokenMarks
    end += len(END)
    return table[:begin], table[begin:end], table[end:]
