"""Processes of a worker that left all that holds them together, found by the variables that they began with.

A process that leaves its session stays below the first process of the worker, which ends it. If that was killed before,
or could not be as quick as what it had to end, the worker's scratch folder is still in the variables of all that it
started: the kernel shows those that a program began with, whatever it does to its own later.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

END_S, POLL_S = 5.0, 0.005
PROCESSES = Path("/proc")


def end_marked(scratch: Path) -> int:
    """End the processes whose TMPDIR this is or was, and return how many.

    All are stopped before any is killed, so that none can start another in the meantime.
    """
    stopped: set[int] = set()
    until = time.monotonic() + END_S
    while (running := find_marked(scratch)) and time.monotonic() < until:
        new = running - stopped
        for pid in new or running:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP if new else signal.SIGKILL)
        stopped |= new
        time.sleep(POLL_S)
    return len(stopped)


def find_marked(scratch: Path) -> set[int]:
    """Return the processes of this user that began with this TMPDIR and have not ended."""
    mark = b"TMPDIR=" + os.fsencode(scratch)
    found = set()
    for name in filter(str.isdigit, os.listdir(PROCESSES)):
        # A zombie shows no variables, and those of other users' processes are hidden.
        with suppress(OSError):
            if mark in (PROCESSES / name / "environ").read_bytes().split(b"\0"):
                found.add(int(name))
    return found - {os.getpid()}
