"""The memory, the descriptors and the number of processes that this machine has left."""

import os
import re
import resource
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")


@dataclass(frozen=True)
class Room:
    """The memory and the tasks (processes and threads) that are left, and the descriptors that a process may open.

    `total_mb` is all memory of the machine, and `gpu_mb` is the memory that is left on the GPUs of a run.

    None means that nothing is known to limit it.
    """

    memory_mb: int | None = None
    total_mb: int | None = None
    tasks: int | None = None
    descriptors: int | None = None
    gpu_mb: int | None = None


def read_room(root: Path = ROOT) -> Room:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Room(
        memory_mb=_find_memory_mb(root, "MemAvailable"),
        total_mb=_find_memory_mb(root, "MemTotal"),
        tasks=_find_tasks(root),
        descriptors=None if hard == resource.RLIM_INFINITY else hard,
    )


def _find_memory_mb(root: Path, name: str) -> int | None:
    match = re.search(rf"^{name}:\s*(\d+)", _read(root / "proc/meminfo"), re.MULTILINE)
    return int(match[1]) // 1024 if match else None


def _find_tasks(root: Path) -> int | None:
    """Return how many more tasks the kernel, this user's limit and this cgroup allow."""
    match = re.search(r"\d+/(\d+)", _read(root / "proc/loadavg"))
    running = int(match[1]) if match else 0
    limits = [_read_int(root / "proc/sys/kernel" / name) for name in ("pid_max", "threads-max")]
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    # The limit does not hold for root.
    limits.append(soft if os.getuid() and soft != resource.RLIM_INFINITY else None)
    left = [limit - running for limit in limits if limit is not None]
    for group in _find_cgroups(root):
        most, used = _read_int(group / "pids.max"), _read_int(group / "pids.current")
        if most is not None:
            left.append(most - (used or 0))
    return max(min(left), 0) if left else None


def _find_cgroups(root: Path) -> list[Path]:
    """Return where the limits of this process's cgroup may be, in either version of cgroups."""
    mounts = root / "sys/fs/cgroup"
    groups = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            groups.append(mounts / path.lstrip("/"))
        elif "pids" in controllers.split(","):
            groups.append(mounts / "pids" / path.lstrip("/"))
    return groups


def _read_int(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
