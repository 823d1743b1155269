"""This machine: the stable facts that name it, and the counters that tell what it did meanwhile."""

import hashlib
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

CPU = Path("/sys/devices/system/cpu")
SHORTEST_S = 0.2
MOST_STEAL = 0.05
MOST_FOREIGN_CORES = 0.3
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def host_facts() -> dict[str, str | int | float | None]:
    cpu = _cpu_model()
    # Nothing that moves by itself, like a clock rate, may make another machine of this one.
    stable = f"{cpu} {os.cpu_count()} {_read('/sys/class/dmi/id/board_name')} {_read('/etc/machine-id')}"
    return {
        "id": hashlib.sha256(stable.encode()).hexdigest()[:12],
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        "system": platform.system(),
        "kernel": platform.release(),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "smt": _read(CPU / "smt/active"),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "virtual": "yes" if " hypervisor" in (_read("/proc/cpuinfo") or "") else "no",
        "governor": _read(CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "cgroup_quota": _read("/sys/fs/cgroup/cpu.max"),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _turbo() -> str | None:
    if (off := _read(CPU / "intel_pstate/no_turbo")) is not None:
        return "off" if off == "1" else "on"
    boost = _read(CPU / "cpufreq/boost")
    return None if boost is None else "on" if boost == "1" else "off"


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None


@dataclass(frozen=True)
class Reading:
    """The kernel's counters at one moment, in seconds over all CPUs."""

    wall: float
    busy: float
    steal: float

    def until(self, later: "Reading", own: float) -> "Meanwhile | None":
        """What happened between two readings, when `own` seconds of the CPU time were this run's; None where that is
        too short for counters of ten milliseconds to tell."""
        wall = later.wall - self.wall
        if wall < SHORTEST_S:
            return None
        return Meanwhile(
            foreign_cores=max(0.0, later.busy - self.busy - own) / wall,
            steal_share=max(0.0, later.steal - self.steal) / wall,
        )


@dataclass(frozen=True)
class Meanwhile:
    """What others did to this machine: cores that they kept busy, and the share of time that a hypervisor took."""

    foreign_cores: float
    steal_share: float

    @property
    def disturbance(self) -> str:
        """In words, or nothing where nothing disturbed. The limits are fixed, whatever the times say."""
        if self.steal_share > MOST_STEAL:
            return f"the hypervisor took {self.steal_share:.0%} of the time"
        if self.foreign_cores > MOST_FOREIGN_CORES:
            return f"other processes kept {self.foreign_cores:.1f} cores busy"
        return ""


def read_counters() -> Reading | None:
    """None where there is no /proc/stat."""
    try:
        with open("/proc/stat") as stat:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq
    return Reading(time.monotonic(), busy / TICKS_A_SECOND, steal / TICKS_A_SECOND)
