"""The CPUs that an engine has, and those of them that its workers may use."""

import os
from pathlib import Path

ONLINE = Path("/sys/devices/system/cpu/online")


def find_cpus(count: int) -> frozenset[int]:
    """Return the CPUs of an engine with this many CPUs; their numbers have gaps where CPUs are offline."""
    online = _read_online()
    # An engine in a virtual machine has other CPUs.
    return online if len(online) == count else frozenset(range(count))


def find_granted(count: int) -> tuple[int, ...] | None:
    """Return the CPUs that this process may use, or None if it may use all CPUs of the engine.

    Workers are children of the engine, so neither taskset nor a batch system affects them.
    """
    cpus, granted = find_cpus(count), os.sched_getaffinity(0)
    return tuple(sorted(granted)) if granted < cpus else None


def _read_online() -> frozenset[int]:
    try:
        ranges = [part.partition("-") for part in ONLINE.read_text().strip().split(",")]
        return frozenset(cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1))
    except (OSError, ValueError):
        return frozenset()
