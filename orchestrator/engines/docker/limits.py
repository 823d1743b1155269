"""The CPUs, memory and processes of a machine, and how much of them each worker may use.

The share of the processes also holds for virtual environments.
"""

import os
from pathlib import Path

from orchestrator.engines import WORKER_TASKS

ONLINE = Path("/sys/devices/system/cpu/online")
# All workers together take no more than this share: the rest is for everything else on the machine.
MEMORY_SHARE, PROCESSES_SHARE = 0.9, 0.5
KERNEL = Path("/proc/sys/kernel")


def share_memory(total: int, workers: int) -> int:
    """Return how many bytes of the engine's memory each of this many workers may use."""
    return int(total * MEMORY_SHARE) // workers


def share_processes(workers: int, kernel: Path = KERNEL) -> int:
    """Return how many processes and threads each of this many workers may have."""
    total = min(_read_number(kernel / "pid_max"), _read_number(kernel / "threads-max"))
    return min(WORKER_TASKS, max(1, int(total * PROCESSES_SHARE) // workers))


def _read_number(path: Path) -> int:
    """Return the number in a kernel file, or the smallest that any kernel has if the file cannot be read."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 2**15


def find_cpus(count: int) -> frozenset[int]:
    """Return the CPUs of an engine with this many CPUs; their numbers have gaps where CPUs are offline."""
    try:
        ranges = [part.partition("-") for part in ONLINE.read_text().strip().split(",")]
        online = frozenset(cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1))
    except (OSError, ValueError):
        online = frozenset()
    # An engine in a virtual machine has other CPUs.
    return online if len(online) == count else frozenset(range(count))


def find_granted_cpus(count: int) -> tuple[int, ...] | None:
    """Return the CPUs that this process may use, or None if it may use all CPUs of the engine.

    Workers are children of the engine, so neither taskset nor a batch system affects them.
    """
    cpus, granted = find_cpus(count), os.sched_getaffinity(0)
    return tuple(sorted(granted)) if granted < cpus else None
