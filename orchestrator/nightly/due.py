"""Decides whether a nightly run has to begin, for cron, systemd and `nightly serve`, which all ask every 15 minutes.

A night has the date of the day on which its start time came. Local time counts, so that a day of 23 or 25 hours also
has one night. A file of this machine records which night began last.
"""

import json
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from orchestrator.catalog import user_data
from orchestrator.errors import UsageError
from orchestrator.nightly import lock
from orchestrator.terminal import strict_json

Missed = Literal["catch-up", "skip"]
MISSED_POLICIES: tuple[Missed, ...] = get_args(Missed)
Step = Literal["wait", "skip", "begin"]

TIME = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})", re.ASCII)
INTERVAL = timedelta(minutes=15)
# A night for which no scheduler asked within this time was missed.
ON_TIME = INTERVAL + timedelta(minutes=5)


def time_of_day(text: str, flag: str = "--at") -> time:
    match = TIME.fullmatch(text.strip())
    if match is None or int(match["hour"]) > 23 or int(match["minute"]) > 59:
        raise UsageError(f"{flag} {text!r}: a time of day, e.g. 02:00 or 23:30")
    return time(int(match["hour"]), int(match["minute"]))


def find_night(now: datetime, at: time) -> date:
    """Return the night whose time came last."""
    today = now.date()
    return today if now.time() >= at else today - timedelta(days=1)


def next_after(now: datetime, at: time, tz: ZoneInfo | None = None) -> datetime:
    """Return when the next nightly run begins, in this machine's time or, like `now`, in `tz`.

    A time that the clock skips is replaced by the one an hour later.
    """
    begins = datetime.combine(find_night(now, at) + timedelta(days=1), at, tz).timestamp()
    return datetime.fromtimestamp(begins, tz) if tz else datetime.fromtimestamp(begins).astimezone()


@dataclass(frozen=True)
class NightRecord:
    """The last night that began or was left out, and the last one for which a scheduler asked in time."""

    night: date
    asked: date


def decide(last: NightRecord | None, now: datetime, at: time, missed: str) -> tuple[NightRecord, Step]:
    """Return what to record, unless a night begins, and what to do now."""
    night = find_night(now, at)
    # A night whose time came before the first call was not missed. If the clock was more than a day ahead, the record
    # is dropped, since no night would begin before that date; a clock may go back by an hour.
    if last is None or last.night - night > timedelta(days=1):
        return NightRecord(night, night), "wait"
    if night <= last.night:
        return last, "wait"
    if age(night, now, at) <= ON_TIME:
        last = replace(last, asked=night)
    if missed == "skip" and last.asked != night:
        return replace(last, night=night), "skip"
    return last, "begin"


def age(night: date, now: datetime, at: time) -> timedelta:
    """Return how long a night has been due, which is negative in an hour that the clock skips."""
    return timedelta(seconds=now.timestamp() - datetime.combine(night, at, now.tzinfo).timestamp())


class DueNights:
    """The nights that one command line asks for on this machine, at a time of day."""

    def __init__(self, name: str, at: time, missed: str) -> None:
        self._at, self._missed = at, missed
        # Machines may share a home directory.
        self._path = user_data.folder() / f"nights-{name}-{socket.gethostname()}.json"

    def read(self) -> NightRecord | None:
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._path.read_text())
            return NightRecord(date.fromisoformat(kept["night"]), date.fromisoformat(kept["asked"]))
        return None

    def is_claimed(self, night: date) -> bool:
        """Return whether a night began or was left out."""
        last = self.read()
        return last is not None and last.night >= night

    def wait_for_next(self, now: datetime) -> None:
        """Record that only nights from now on are waited for, since the last one was not missed."""
        night = find_night(now, self._at)
        self._keep(NightRecord(night, night))

    def look(self, now: datetime) -> Step:
        """Return what to do now, and record it unless a night has to begin."""
        last = self.read()
        known, step = decide(last, now, self._at, self._missed)
        if step != "begin" and known != last:
            self._keep(known)
        return step

    def claim(self, now: datetime) -> date | None:
        """Return the night that the caller has to begin now, if one is due and no nightly run is in progress.

        Each night is returned only once.
        """
        if self.look(now) != "begin":
            return None
        night = find_night(now, self._at)
        with lock.try_hold() as alone:
            if not alone:
                # A scheduler asked in time, so this night is not missed when the other nightly run has ended.
                self._keep(decide(self.read(), now, self._at, self._missed)[0])
                return None
            # Another process may have claimed the night meanwhile.
            if self.look(now) != "begin":
                return None
            try:
                self._keep(NightRecord(night, night))
            except UsageError:
                # A full disk is no reason to leave out a night, but later calls would begin it again.
                if age(night, now, self._at) >= INTERVAL:
                    raise
        return night

    def _keep(self, marked: NightRecord) -> None:
        user_data.write_user_file(
            self._path, strict_json.dump({"night": str(marked.night), "asked": str(marked.asked)}) + "\n", 0o600
        )

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)
