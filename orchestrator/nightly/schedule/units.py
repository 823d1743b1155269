"""The times of nightly runs, and what schedulers need: systemd units, or a script and a line for cron. Pure."""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Literal, cast, get_args
from zoneinfo import ZoneInfo, available_timezones

from pydantic import TypeAdapter, ValidationError

from orchestrator.catalog.version import FlavourName
from orchestrator.errors import UsageError

Missed = Literal["catch-up", "skip"]

UNIT = "tfcompare-nightly"
MARK = f"# {UNIT} "
END = f"# {UNIT}: end\n"
WRITTEN = "# Written by `tfcompare nightly install`; `tfcompare nightly uninstall` removes it.\n"
TIME = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})", re.ASCII)
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# A path in a unit ends with its line, without spaces at its end, and a backslash there continues the line.
UNREADABLE = re.compile(rf"{CONTROL.pattern}|[ \\]$")
# A file of variables is named by a pattern.
PATTERN = re.compile(rf"{UNREADABLE.pattern}|[*?[\\]")
PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)
# A night ends itself at its limit and then judges; what still runs after this hangs in earnest.
BELT_S = 1800
POLITE_S = 120


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The facts that are stored with a scheduler's entry and read back from it."""

    at: str
    missed: Missed
    # Of `tfcompare nightly run`.
    flags: tuple[str, ...]
    history: str
    host: str
    since: datetime
    # The time zone of `at`, if it is not the machine's.
    zone: str
    device: FlavourName

    @property
    def tz(self) -> ZoneInfo | None:
        return ZoneInfo(self.zone) if self.zone in available_timezones() else None


@dataclass(frozen=True, kw_only=True)
class Schedule:
    planned: Planned
    program: tuple[str, ...]
    environment: Mapping[str, str]
    # Where relative paths among the flags begin.
    folder: Path
    env_file: Path | None
    limit_s: float
    # What a night gets in its environment and must be in no file or argument; only `serve` can hand it on.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def command(self) -> tuple[str, ...]:
        return (*self.program, "nightly", "run", *self.planned.flags, "--due", self.planned.at)

    @property
    def belt_s(self) -> int:
        return round(self.limit_s) + BELT_S


def time_of_day(text: str, flag: str = "--at") -> time:
    match = TIME.fullmatch(text.strip())
    if match is None or int(match["hour"]) > 23 or int(match["minute"]) > 59:
        raise UsageError(f"{flag} {text!r}: a time of day, e.g. 02:00 or 23:30")
    return time(int(match["hour"]), int(match["minute"]))


def zone(variable: str | None) -> str:
    """Return the name of the zone that TZ asks for, or '' for that of the machine."""
    if variable is None or variable.lstrip(":") == "/etc/localtime":
        return ""
    name = variable.lstrip(":").removeprefix("/usr/share/zoneinfo/") or "UTC"
    if name not in available_timezones():
        raise UsageError(f"TZ={variable!r}: no time zone known here. Name one such as Europe/Berlin, or unset TZ")
    return name


def parse_missed(text: str) -> Missed:
    if text not in get_args(Missed):
        raise UsageError(f"--missed {text!r}: it is {' or '.join(get_args(Missed))}")
    return cast(Missed, text)


def due(now: datetime, at: time) -> date:
    """Return the night whose time came last.

    This goes by the clock on the wall, so that a day of 23 or 25 hours also has a night.
    """
    today = now.date()
    return today if now.time() >= at else today - timedelta(days=1)


def next_after(now: datetime, at: time, tz: ZoneInfo | None = None) -> datetime:
    """Return when the next nightly run begins, in this machine's time or, like `now`, in `tz`.

    A time that the clock skips is replaced by the one an hour later.
    """
    begins = datetime.combine(due(now, at) + timedelta(days=1), at, tz).timestamp()
    return datetime.fromtimestamp(begins, tz) if tz else datetime.fromtimestamp(begins).astimezone()


def units(schedule: Schedule, *, system: bool) -> dict[str, str]:
    """Return the service and the timer, by name."""
    planned = schedule.planned
    # A user's own manager knows nothing of the system's units.
    after = "Wants=network-online.target\nAfter=network-online.target docker.service\n" if system else ""
    variables = "".join(
        f"Environment={_quote(f'{name}={value}')}\n" for name, value in sorted(schedule.environment.items())
    )
    env_file = f"EnvironmentFile={_check_path(schedule.env_file, PATTERN)}\n" if schedule.env_file else ""
    # systemd takes no program with a quote in its name, however it is written.
    through = () if PLAIN.fullmatch(schedule.program[0]) else ("/usr/bin/env",)
    command = " ".join(_quote(word).replace("$", "$$") for word in (*through, *schedule.command))
    service = (
        f"[Unit]\nDescription=tfcompare measures a night\n{after}"
        f"\n[Service]\nType=exec\nWorkingDirectory={_check_path(schedule.folder)}\n{variables}{env_file}"
        f"ExecStart={command}\n"
        # Only tfcompare itself knows what it has to free, so only it is asked to end.
        f"KillMode=mixed\nRuntimeMaxSec={schedule.belt_s}\nTimeoutStopSec={POLITE_S}\n"
    )
    timer = (
        "[Unit]\nDescription=tfcompare measures every night\n"
        f"\n[Timer]\nOnCalendar={' '.join(filter(None, ('*-*-*', f'{planned.at}:00', planned.zone)))}\nAccuracySec=1s\n"
        f"Persistent={'true' if planned.missed == 'catch-up' else 'false'}\n"
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
            f"{str(path)!r}: systemd cannot read this name because of its {match[0]!r}; rename it, or take "
            "--scheduler cron"
        )
    return _percents(str(path))


def _percents(text: str) -> str:
    return text.replace("%", "%%")


def script(schedule: Schedule, begun: Path) -> str:
    """Return the script that cron calls.

    A script is needed because cron provides hardly any environment, cuts off long lines, and ends a line at a %. The
    file `begun` holds the last night that began.
    """
    planned = schedule.planned
    log = Path(planned.history) / "log"
    lines = [f"cd {_shell(schedule.folder)} || exit"]
    exports = {name: f"export {name}={_shell(value)}" for name, value in sorted(schedule.environment.items())}
    # Before anything asks for the time.
    lines += [exports.pop("TZ")] if "TZ" in exports else []
    if planned.missed == "catch-up":
        # Called every hour: the night whose time came last, unless it has begun. By dates alone, since some times of
        # day do not exist on some days.
        lines += [
            "night=$(date +%F)",
            f'[ "$(date +%H%M)" -ge {planned.at.replace(":", "")} ] || night=$(date -d "yesterday 12:00" +%F)',
            f'[ "$(cat {_shell(begun)} 2>/dev/null)" != "$night" ] || exit 0',
            f'echo "$night" > {_shell(begun)}',
        ]
    elif planned.zone:
        # cron knows the machine's zone only, and calls this every hour.
        lines.append(f'[ "$(date +%H)" = {planned.at[:2]} ] || exit 0')
    lines += exports.values()
    if schedule.env_file:
        lines += ["set -a", f". {_shell(schedule.env_file)}", "set +a"]
    lines += [
        f"mkdir -p {_shell(log)}",
        f"exec timeout --kill-after={POLITE_S} {schedule.belt_s} \\",
        f"    {shlex.join(schedule.command)} \\",
        f'    >> {_shell(log)}/"nightly-$(date +%F).log" 2>&1',
    ]
    return "#!/bin/sh\n" + add_marker("\n".join(lines) + "\n", planned)


def _shell(value: Path | str) -> str:
    return shlex.quote(str(value))


def cron_lines(planned: Planned, called: Path) -> str:
    """Return the lines for a crontab, between two marks."""
    at = time_of_day(planned.at)
    hour = "*" if planned.missed == "catch-up" or planned.zone else str(at.hour)
    # Before a % or another backslash, implementations of cron read a backslash in different ways.
    if match := re.search(rf"{CONTROL.pattern}|\\", str(called)):
        raise UsageError(
            f"{str(called)!r}: cron cannot read this name because of its {match[0]!r}; set TFCOMPARE_DATA to another "
            "folder"
        )
    command = f"/bin/sh {_shell(called)}".replace("%", "\\%")
    return add_marker(f"{at.minute} {hour} * * * {command}\n", planned) + END


def add_marker(body: str, planned: Planned) -> str:
    facts = _type_of_planned().dump_python(planned, mode="json")
    return f"{MARK}{json.dumps({**facts, 'sum': _sum(facts, body)})}\n{WRITTEN}{body}"


def _sum(facts: Mapping[str, object], body: str) -> str:
    return hashlib.sha256((json.dumps(facts, sort_keys=True) + body).encode("utf-8", "surrogateescape")).hexdigest()[
        :12
    ]


@dataclass(frozen=True)
class Written:
    """An entry as it was read back from a scheduler.

    `planned` is None if nothing in it is tfcompare's. `edited` says whether it differs from what was written.
    """

    planned: Planned | None
    edited: bool


def read_entry(text: str) -> Written:
    """Read back a whole unit, a script, or the part of a crontab between the marks."""
    head, _, rest = text.partition(MARK)
    line, _, body = rest.partition("\n")
    try:
        facts = json.loads(line)
        checksum = facts.pop("sum")
        planned = _type_of_planned().validate_python(facts)
    except (ValueError, KeyError, AttributeError, ValidationError):
        return Written(None, True)
    complete = body.startswith(WRITTEN) and head in ("", "#!/bin/sh\n")
    return Written(planned, not complete or checksum != _sum(facts, body.removeprefix(WRITTEN)))


def entry_as_text(planned: Planned) -> str:
    return json.dumps(_type_of_planned().dump_python(planned, mode="json"))


def from_text(text: str) -> Planned | None:
    try:
        return _type_of_planned().validate_python(json.loads(text))
    except (ValueError, ValidationError):
        return None


def _type_of_planned() -> TypeAdapter[Planned]:
    return TypeAdapter(Planned)


class Torn(Exception):
    """A crontab in which one of tfcompare's marks is missing."""


def own_part(table: str) -> tuple[str, str, str]:
    """Split a crontab into the parts before, between and after tfcompare's marks."""
    begin = 0 if table.startswith(MARK) else table.find("\n" + MARK) + 1
    if begin == 0 and not table.startswith(MARK):
        if END in table:
            raise Torn
        return table, "", ""
    end = table.find(END, begin)
    if end < 0:
        raise Torn
    end += len(END)
    return table[:begin], table[begin:end], table[end:]
