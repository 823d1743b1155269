"""Processes that escaped from their worker, found by the environment variables that they started with.

A process that leaves its session stays a descendant of the worker's first process, which ends it. If that one was
killed before, or was too slow to end all of them, the worker's scratch folder still marks all that it started: the
kernel shows the variables that a program began with, even if the program changes them later.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

END_S, POLL_S = 5.0, 0.005
PROCESSES = Path("/proc")


def end_escaped(scratch: Path) -> int:
    """End the processes that began with this TMPDIR, and return their number.

    All are stopped before any is killed, so that none can start another in the meantime.
    """
    stopped: set[int] = set()
    until = time.monotonic() + END_S
    while (running := find_escaped(scratch)) and time.monotonic() < until:
        new = running - stopped
        for pid in new or running:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP if new else signal.SIGKILL)
        stopped |= new
        time.sleep(POLL_S)
    return len(stopped)


def find_escaped(scratch: Path) -> set[int]:
    """Return the processes of this user that began with this TMPDIR and have not ended."""
    mark = b"TMPDIR=" + os.fsencode(scratch)
    found = set()
    for name in filter(str.isdigit, os.listdir(PROCESSES)):
        # A zombie shows no variables, and those of other users' processes are hidden.
        with suppress(OSError):
            if mark in (PROCESSES / name / "environ").read_bytes().split(b"\0"):
                found.add(int(name))
    return found - {os.getpid()}
