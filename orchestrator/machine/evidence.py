"""Evidence of why something died: file systems that are full, memory that ran out, and GPUs that are gone."""

import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.machine.gpu import find_gpus

# Less free space than this counts as none, because a replicate writes more at once.
LEAST_FREE = 2**16
VMSTAT, KERNEL_LOG = Path("/proc/vmstat"), Path("/dev/kmsg")
GROUPS = Path("/sys/fs/cgroup")
# The clock of the kernel's log and that of Python may differ by this much.
SLACK_S = 5.0
LONGEST_RECORD = 8192

# This names what ran out of memory: the machine, or a group with a limit. 'none' is certain, and '' means unknown.
OutOfMemory = Literal["machine", "group", "none", ""]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The state of the machine when something has just died; `record` is the kernel's own line about it."""

    full: tuple[str, ...] = ()
    memory: OutOfMemory = ""
    record: str = ""
    gone_gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class MemoryMark:
    """A moment, how many processes the kernel had ended by then for lack of memory, and a group with a limit.

    `limit` is the file that counts how often the limit of the group was reached, and `reached` is its number then.
    """

    at_s: float
    ended: int | None
    limit: Path | None = None
    reached: int | None = None

    @classmethod
    def now(cls, pid: int | None = None) -> "MemoryMark":
        """Return this moment and the group of a process, or of this process if none is given."""
        limit = _find_limit(pid)
        return cls(time.monotonic(), _count_ended(), limit, _count_reached(limit) if limit else None)

    @classmethod
    def elsewhere(cls) -> "MemoryMark":
        """Return this moment for a process on a machine that cannot be queried."""
        return cls(time.monotonic(), None)


def describe_full(folder: Path) -> str:
    """Describe why a folder's file system takes no more data; return '' if it takes more or cannot be queried."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return ""
    if status.f_flag & os.ST_RDONLY:
        return f"the file system of {folder} is read-only"
    # Some of the free space is reserved for root.
    free = (status.f_bavail if os.getuid() else status.f_bfree) * status.f_frsize
    if status.f_blocks and free < LEAST_FREE:
        return f"the file system of {folder} is full ({free // 1024} KB left)"
    if status.f_files and not status.f_ffree:
        return f"the file system of {folder} has no room for another file"
    return ""


def describe_full_folders(folders: Iterable[Path]) -> tuple[str, ...]:
    return tuple(filter(None, map(describe_full, folders)))


def find_gone_gpus(keys: Collection[str]) -> tuple[str, ...]:
    """Return which of these GPUs this machine no longer shows."""
    if not keys:
        return ()
    present = {gpu.key for gpu in find_gpus()}
    return tuple(key for key in keys if key not in present)


def find_out_of_memory(since: MemoryMark) -> tuple[OutOfMemory, str]:
    """Return what has run out of memory since then, with the kernel's record of it if this process may read that."""
    ended = _count_ended()
    if since.ended is None or ended is None:
        return "", ""
    if ended <= since.ended:
        return "none", ""
    if records := list(_kernel_records(since.at_s)):
        return ("group" if "CONSTRAINT_MEMCG" in records[-1] else "machine"), records[-1]
    reached = _count_reached(since.limit) if since.limit else None
    in_group = since.reached is not None and reached is not None and reached > since.reached
    return ("group" if in_group else "machine"), ""


def _count_ended() -> int | None:
    return _read_number(VMSTAT, "oom_kill ")


def _count_reached(file: Path) -> int | None:
    return _read_number(file, "oom " if file.name == "memory.events" else "")


def _read_number(file: Path, before: str) -> int | None:
    """Return the number that follows a word at the beginning of a line."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith(before):
                return int(line.removeprefix(before))
    return None


def _find_limit(pid: int | None) -> Path | None:
    """Return the file that counts how often a process's group reached its limit, in either version of cgroups."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid or 'self'}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            group = GROUPS / ("memory" if controllers else "") / path.lstrip("/")
            file = group / ("memory.failcnt" if controllers else "memory.events")
            if (not controllers or "memory" in controllers.split(",")) and file.exists():
                return file
    return None


def _kernel_records(since_s: float) -> Iterator[str]:
    """Yield the kernel's records since then of processes that it ended for lack of memory; root may read them."""
    try:
        handle = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        while record := _next_record(handle):
            # A record has its priority, number and microseconds, then the text, and after a line end its fields.
            head, _, text = record.partition(";")
            match = re.match(r"\d+,\d+,(\d+)", head)
            if match and text.startswith("oom-kill:") and int(match[1]) / 1e6 >= since_s - SLACK_S:
                yield text.partition("\n")[0]
    finally:
        os.close(handle)


def _next_record(handle: int) -> str:
    """Return the next record of the kernel's log; '' at its end."""
    while True:
        try:
            return os.read(handle, LONGEST_RECORD).decode("utf-8", "replace")
        except BrokenPipeError:
            # The kernel has overwritten the records that came next.
            continue
        except OSError:
            return ""
