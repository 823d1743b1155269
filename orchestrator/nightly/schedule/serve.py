"""Waits for each nightly run and starts it where nothing else does, e.g. in a container."""

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import IO

from orchestrator import interrupts
from orchestrator.catalog import user_data
from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import units
from orchestrator.nightly.schedule.units import POLITE_S, Schedule
from orchestrator.terminal.durations import format_hours_minutes
from orchestrator.terminal.view import View

# Clocks are set, machines sleep: the time is looked at again and again, and never waited for in one piece.
STEP_S = 20.0
# A start that is later than this has missed the night.
ON_TIME = timedelta(minutes=10)


def serve_nights(
    wanted: Schedule,
    view: View,
    clock: Callable[[], datetime] = datetime.now,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Start every nightly run until interrupted."""
    at = units.time_of_day(wanted.planned.at)
    # What was due before anybody waited for it was not missed.
    marker = user_data.folder() / f"serve-{wanted.planned.device}.begun"
    begun = _last_start(marker) or units.due(clock(), at)
    _keep(marker, begun)
    view.say(_waiting(clock(), wanted))
    while True:
        now = clock()
        night = units.due(now, at)
        if night > begun:
            begun = night
            _try_to_keep(marker, begun)
            is_due = wanted.planned.missed == "catch-up" or now - datetime.combine(night, at) <= ON_TIME
            view.say(_spent(wanted, night) if is_due else f"{night}: missed, and skipped")
            view.say(_waiting(clock(), wanted))
        elif begun - night > timedelta(days=1):
            # The clock was far ahead, and would keep us waiting until it is there again. By an hour it may go back.
            begun = night
            _try_to_keep(marker, begun)
        until = units.next_after(clock(), at).timestamp() - clock().timestamp()
        pause(max(0.1, min(STEP_S, until)))


def _try_to_keep(marker: Path, night: date) -> None:
    with suppress(UsageError):
        # A full disk is no reason to leave out a night.
        _keep(marker, night)


def _waiting(now: datetime, wanted: Schedule) -> str:
    following = units.next_after(now, units.time_of_day(wanted.planned.at))
    left = format_hours_minutes(following - now.astimezone())
    return f"the next nightly run starts at {following:%Y-%m-%d %H:%M %Z}, in {left}"


def _spent(wanted: Schedule, night: date) -> str:
    """Run a night to its end, and return a line about the outcome."""
    log = Path(wanted.planned.history) / "log" / f"nightly-{night}.log"
    begun = time.monotonic()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            ended = _run(wanted, output)
    except OSError as error:
        return f"{night}: could not be run: {error.filename}: {error.strerror}"
    took = format_hours_minutes(timedelta(seconds=time.monotonic() - begun))
    return f"{night}: {ended} after {took}; {log}"


def _run(wanted: Schedule, output: IO[bytes]) -> str:
    process: subprocess.Popen[bytes] | None = None
    try:
        # An interrupt while it starts would leave it to itself.
        with interrupts.hold():
            # In a separate session: a Ctrl-C reaches only this process, which passes it on once.
            process = subprocess.Popen(
                wanted.command,
                env={**os.environ, **wanted.secrets},
                # Closed with this process, however that ends.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return f"exit code {process.wait(wanted.belt_s)}"
    except subprocess.TimeoutExpired:
        assert process is not None
        _end(process)
        return "hung, and was ended"
    except BaseException:
        if process is not None:
            _end(process)
        raise
    finally:
        if process is not None and process.stdin is not None:
            process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLITE_S)
    finally:
        process.kill()
        process.wait()


def _last_start(marker: Path) -> date | None:
    with suppress(OSError, ValueError):
        return date.fromisoformat(marker.read_text().strip())
    return None


def _keep(marker: Path, night: date) -> None:
    user_data.write_user_file(marker, f"{night}\n")
