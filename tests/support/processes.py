"""Processes that tests start by way of others, and wait to see end."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Long enough for a busy machine; what ends at all ends in a moment.
PATIENCE_S = 180.0


def is_running(pid: int) -> bool:
    """Say whether a thread of it is left: files stay open and locked until the last one ended."""
    try:
        state, *others = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    threads = int(others[16])
    return state not in "ZX" or threads > 1


def wait_for_end(*pids: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"still running: {running}"
        time.sleep(0.01)


def read_pids(file: Path, count: int = 1) -> list[int]:
    """Wait until this many processes have written their number, one per line, and return the numbers."""
    until = time.monotonic() + PATIENCE_S
    while not (file.exists() and file.read_text().count("\n") >= count):
        assert time.monotonic() < until, f"{file} has no {count} lines"
        time.sleep(0.01)
    return list(map(int, file.read_text().split()))


@contextmanager
def start_neighbours(count: int) -> Iterator[None]:
    """This many processes that compute without end."""
    with ExitStack() as started:
        for _ in range(count):
            process = started.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            started.callback(process.kill)
        yield
