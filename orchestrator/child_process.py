"""The command that starts tfcompare in a child process, and how processes that this one has started end.

They end politely at first, and together with their group if that fails.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

Process = subprocess.Popen[Any]

# -P keeps the working directory off the path, where a file could otherwise pose as one of our modules.
PROGRAM = (sys.executable, "-P", "-c", "from orchestrator.__main__ import main; main()")
# This program also ends with the process that started it, which holds the other end of its stdin.
BOUND_PROGRAM = (
    *PROGRAM[:-1],
    f"from orchestrator.interrupts import end_with_stdin; end_with_stdin(); {PROGRAM[-1]}",
)


def has_ended(process: Process, within_s: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
    return process.returncode is not None


def end_child(process: Process, polite_s: float) -> None:
    """Ask a process to end; kill it with its group, which it has to lead, if it does not."""
    process.terminate()
    try:
        has_ended(process, polite_s)
    finally:
        end_group(process)


def end_group(process: Process) -> None:
    """Kill a process that has not ended, with its group."""
    if process.poll() is None:
        kill_group(process.pid)
    process.wait()


def kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
