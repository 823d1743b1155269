"""Waits for each nightly run and starts it where nothing else does, e.g. in a container."""

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from pathlib import Path
from typing import IO

from orchestrator import interrupts
from orchestrator.child_process import end_child
from orchestrator.errors import UsageError
from orchestrator.nightly.due import INTERVAL, find_night, next_after, time_of_day
from orchestrator.nightly.schedule.units import POLITE_S, Schedule
from orchestrator.terminal.durations import format_hours_minutes
from orchestrator.terminal.view import View

# Clocks are set and machines sleep, so the clock is read again after each short wait.
STEP_S = 20.0


def serve_nights(
    wanted: Schedule,
    view: View,
    clock: Callable[[], datetime] = datetime.now,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Start every nightly run until interrupted."""
    at, nights = time_of_day(wanted.planned.at), wanted.planned.due
    if nights.read() is None:
        nights.wait_for_next(clock())
    view.say(_describe_next_run(clock(), at))
    asked, reported = datetime.min, date.min
    while True:
        now = clock()
        night, step, line = find_night(now, at), "wait", ""
        with suppress(UsageError):
            # A full disk is no reason to leave out a night.
            step = nights.look(now)
        if step == "skip":
            line = "missed, and skipped"
        elif step == "begin" and abs(now - asked) >= INTERVAL:
            asked = now
            ended = _run_night(wanted, night)
            # The command does nothing while another nightly run is in progress, and then nothing is reported.
            if nights.is_claimed(night) or (reported != night and not ended.startswith("exit code 0 ")):
                line = ended
        if line:
            reported = night
            view.say(f"{night}: {line}")
            view.say(_describe_next_run(clock(), at))
        until = next_after(clock(), at).timestamp() - clock().timestamp()
        pause(max(0.1, min(STEP_S, until)))


def _describe_next_run(now: datetime, at: clock_time) -> str:
    following = next_after(now, at)
    left = format_hours_minutes(following - now.astimezone())
    return f"the next nightly run starts at {following:%Y-%m-%d %H:%M %Z}, in {left}"


def _run_night(wanted: Schedule, night: date) -> str:
    """Start the nightly run of this night, wait for its end, and return how it ended."""
    log = Path(wanted.planned.history) / "log" / f"nightly-{night}.log"
    begun = time.monotonic()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            ended = _run(wanted, output)
    except OSError as error:
        return f"could not be run: {error.filename}: {error.strerror}"
    took = format_hours_minutes(timedelta(seconds=time.monotonic() - begun))
    return f"{ended} after {took}; {log}"


def _run(wanted: Schedule, output: IO[bytes]) -> str:
    process: subprocess.Popen[bytes] | None = None
    try:
        # An interrupt while the process starts would leave it running.
        with interrupts.hold():
            # The command leads a session, so that a Ctrl-C reaches only this process, which passes it on once.
            process = subprocess.Popen(
                wanted.command,
                env={**os.environ, **wanted.secrets},
                # The pipe is closed when this process ends, however it ends.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return f"exit code {process.wait(wanted.hard_limit_s)}"
    except subprocess.TimeoutExpired:
        assert process is not None
        end_child(process, POLITE_S)
        return "hung, and was ended"
    except BaseException:
        if process is not None:
            end_child(process, POLITE_S)
        raise
    finally:
        if process is not None and process.stdin is not None:
            process.stdin.close()
