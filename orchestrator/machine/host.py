"""This machine: identifying facts, changing readings, and counters that show what other processes did."""

import hashlib
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from statistics import fmean

from orchestrator.machine.gpu import Gpu, GpuReading, describe_processes, disturbance, find_gpus, read_gpus, spans
from orchestrator.model import GpuSpan

Facts = dict[str, str | int | float | None]

ROOT = Path("/")
CPU = "sys/devices/system/cpu"
SHORTEST_S = 0.2
# Both are shares of the CPUs that the run can use.
MOST_STEAL_SHARE = 0.05
MOST_FOREIGN_SHARE = 0.15
MOST_CLOCK_JUMP_S = 0.5
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

WHOLE_LINE = r"(.+)"
TEXTS = {
    "boot": ("proc/sys/kernel/random/boot_id", WHOLE_LINE),
    "microcode": ("proc/cpuinfo", r"^microcode\s*: (.+)"),
    "smt": (f"{CPU}/smt/active", WHOLE_LINE),
    "governor": (f"{CPU}/cpu0/cpufreq/scaling_governor", WHOLE_LINE),
    "thp": ("sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
    "aslr": ("proc/sys/kernel/randomize_va_space", WHOLE_LINE),
    "cgroup_quota": ("sys/fs/cgroup/cpu.max", WHOLE_LINE),
}


def host_facts(root: Path = ROOT, find_gpus: Callable[[], tuple[Gpu, ...]] = find_gpus) -> Facts:
    return {
        "id": _identify(root),
        "system": platform.system(),
        "kernel": platform.release(),
        "cpu": _name_cpu(root),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "numa_nodes": len(list(root.glob("sys/devices/system/node/node[0-9]*"))) or None,
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "swap_mb": _find_int(root, "proc/meminfo", r"^SwapTotal:\s*(\d+)", 1024),
        "virtual": "yes" if _find(root, "proc/cpuinfo", r"( hypervisor)\b") else "no",
        "container": "yes" if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists() else "no",
        "turbo": _turbo(root),
        "mhz_max": _find_int(root, f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq", r"(\d+)", 1000),
        "gpus": "; ".join(map(str, find_gpus())) or None,
        "load": _load(root),
        "psi_cpu": _pressure(root, "cpu", "avg10"),
        "python": platform.python_version(),
        "booted": _find_boot(root),
        **{fact: _find(root, path, pattern) for fact, (path, pattern) in TEXTS.items()},
    }


def _find_boot(root: Path) -> str | None:
    """Return when this machine was started, to the minute."""
    seconds = _find(root, "proc/stat", r"^btime (\d+)")
    return None if seconds is None else f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC"


def is_here(facts: Mapping[str, object], root: Path = ROOT) -> bool:
    """Return whether facts belong to this machine."""
    return facts.get("id") == _identify(root)


def _identify(root: Path) -> str:
    # Values that change by themselves, like a clock rate, must not change the identity. GPUs are not part of it,
    # because a driver that has just been upgraded shows none until the next start.
    board = _find(root, "sys/class/dmi/id/board_name", WHOLE_LINE)
    stable = (_name_cpu(root), os.cpu_count(), board, _find(root, "etc/machine-id", WHOLE_LINE))
    return hashlib.sha256(" ".join(map(str, stable)).encode()).hexdigest()[:12]


def _name_cpu(root: Path) -> str:
    return _find(root, "proc/cpuinfo", r"^model name\s*: (.+)") or platform.machine()


def moment(root: Path = ROOT, read: Callable[[], tuple[GpuReading, ...]] = read_gpus) -> Facts:
    """Return the machine's changing readings, such as load and temperature, as they are now.

    None means that this machine does not report the value.
    """
    rates = re.findall(r"^cpu MHz\s*: ([\d.]+)", _read(root / "proc/cpuinfo") or "", re.MULTILINE)
    zones = [_read(zone) for zone in root.glob("sys/class/thermal/thermal_zone*/temp")]
    return {
        "load": _load(root),
        "running": _find_int(root, "proc/loadavg", r" (\d+)/", 1),
        "psi_cpu": _pressure(root, "cpu", "avg10"),
        "psi_memory": _pressure(root, "memory", "avg10"),
        "psi_io": _pressure(root, "io", "avg10"),
        "mhz": round(fmean(map(float, rates))) if rates else None,
        "temperature_c": max((int(zone) / 1000 for zone in zones if zone), default=None),
        "available_mb": _find_int(root, "proc/meminfo", r"^MemAvailable:\s*(\d+)", 1024),
        **{f"gpu{reading.index}": str(reading) for reading in read()},
    }


def _turbo(root: Path) -> str | None:
    if (off := _read(root / CPU / "intel_pstate/no_turbo")) is not None:
        return "off" if off == "1" else "on"
    boost = _read(root / CPU / "cpufreq/boost")
    return None if boost is None else "on" if boost == "1" else "off"


def _load(root: Path) -> float | None:
    figure = _find(root, "proc/loadavg", r"^([\d.]+)")
    return None if figure is None else float(figure)


def _pressure(root: Path, resource: str, field: str) -> float | None:
    """Return a figure about the time in which some task waited.

    Returns None if the kernel lacks these files, or has them and does not let them be read.
    """
    figure = _find(root, f"proc/pressure/{resource}", rf"^some .*\b{field}=([\d.]+)")
    return None if figure is None else float(figure)


def _find_int(root: Path, path: str, pattern: str, divisor: int) -> int | None:
    figure = _find(root, path, pattern)
    return None if figure is None else int(figure) // divisor


def _find(root: Path, path: str, pattern: str) -> str | None:
    match = re.search(pattern, _read(root / path) or "", re.MULTILINE)
    return match[1] if match else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


@dataclass(frozen=True)
class Reading:
    """The kernel's counters and clocks at one moment, in seconds; `busy` and `steal` are sums over this many `cpus`."""

    wall: float
    busy: float
    steal: float
    clock: float | None = None
    since_boot: float | None = None
    waited: float | None = None
    cpus: int = 1

    def until(self, later: "Reading", own: float) -> "Interference | None":
        """Return what happened between two readings, given that `own` seconds of the CPU time were this run's.

        Returns None if the interval is too short for counters with a resolution of ten milliseconds.
        """
        wall = later.wall - self.wall
        if wall < SHORTEST_S:
            return None
        clock = _difference(self.clock, later.clock)
        since_boot = _difference(self.since_boot, later.since_boot)
        waited = _difference(self.waited, later.waited)
        return Interference(
            foreign_cores=max(0.0, later.busy - self.busy - own) / wall,
            steal_share=max(0.0, later.steal - self.steal) / wall / self.cpus,
            clock_jump_s=0.0 if clock is None else abs(clock - wall),
            # Unlike the clock of `wall`, the one since boot continues while the machine sleeps.
            suspended_s=0.0 if since_boot is None else max(0.0, since_boot - wall),
            waiting_share=None if waited is None else waited / wall,
            cpus=self.cpus,
            idle_share=max(0.0, 1 - (later.busy - self.busy + later.steal - self.steal) / wall / self.cpus),
        )


@dataclass(frozen=True)
class Interference:
    """The effects of other processes and the hypervisor on this machine between two readings.

    The fields are how many of these CPUs other processes kept busy, the share of CPU time that a hypervisor took, how
    far the clock was moved, how long the machine slept, the share of time in which some task waited for a CPU, the
    number of these CPUs, and the share of CPU time that was idle.
    """

    foreign_cores: float
    steal_share: float
    clock_jump_s: float = 0.0
    suspended_s: float = 0.0
    waiting_share: float | None = None
    cpus: int = 1
    idle_share: float = 0.0

    @property
    def foreign_share(self) -> float:
        return self.foreign_cores / self.cpus

    @property
    def disturbance(self) -> str:
        """The disturbance in words, or '' if there was none; the limits do not depend on the measured times."""
        # A suspension also moves the wall clock, so it is reported first. `waiting_share` is not judged: a run's own
        # threads wait for each other's CPUs, and the kernel does not report which tasks waited.
        if self.suspended_s >= MOST_CLOCK_JUMP_S:
            return f"the machine was suspended for {self.suspended_s:.1f} s"
        if self.clock_jump_s >= MOST_CLOCK_JUMP_S:
            return f"the clock jumped by {self.clock_jump_s:.1f} s"
        if self.steal_share > MOST_STEAL_SHARE:
            return f"the hypervisor took {self.steal_share:.0%} of the time"
        if self.foreign_share > MOST_FOREIGN_SHARE:
            return f"other processes kept {self.foreign_cores:.1f} cores busy"
        return ""


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def read_counters(cpus: frozenset[int] | None = None, root: Path = ROOT) -> Reading | None:
    """Return the counters of these CPUs, or of all CPUs.

    Returns None if there is no /proc/stat, or if it lists none of these CPUs.
    """
    wanted = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
    try:
        with open(root / "proc/stat") as stat:
            lines = [line.split() for line in takewhile(lambda line: line.startswith("cpu"), stat)]
        times = [tuple(map(int, line[1:9])) for line in lines if line[0] in wanted]
        counted = len(lines) - 1 if cpus is None else len(times)
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(sum, zip(*times, strict=True))
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq
    waited = _pressure(root, "cpu", "total")
    return Reading(
        wall=time.monotonic(),
        busy=busy / TICKS_A_SECOND,
        steal=steal / TICKS_A_SECOND,
        clock=time.time(),
        since_boot=time.clock_gettime(time.CLOCK_BOOTTIME),
        waited=None if waited is None else waited / 1e6,
        cpus=max(counted, 1),
    )


@dataclass(frozen=True)
class Process:
    """A process of this machine: when it started, in ticks, and its CPU time in seconds.

    `waited_s` is the CPU time of children that it has waited for.
    """

    pid: int
    name: str
    parent: int
    group: int
    started: int
    spent_s: float
    waited_s: float


def read_processes(root: Path = ROOT) -> Iterator[Process]:
    for pid in filter(str.isdigit, os.listdir(root / "proc")):
        try:
            stat = (root / "proc" / pid / "stat").read_text(errors="replace")
        except OSError:
            # The process has ended in the meantime.
            continue
        # A process may have any name, also one with brackets and blanks.
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()
        own, waited = (sum(map(int, fields[first : first + 2])) / TICKS_A_SECOND for first in (11, 13))
        yield Process(int(pid), name, int(fields[1]), int(fields[2]), int(fields[19]), own, waited)


def sum_cpu_time(groups: Collection[int], root: Path = ROOT) -> float:
    """Return the CPU time of these process groups, including all threads and ended children."""
    if not groups:
        return 0.0
    return sum(process.spent_s + process.waited_s for process in read_processes(root) if process.group in groups)


@dataclass(frozen=True)
class DisturbanceMonitor:
    """Readings from before the bursts of a visit and after each of them, to detect disturbances afterwards.

    `gpus` are the keys of the watched GPUs: all GPUs if empty, None on a CPU. `groups` are the process groups of
    those workers that run on this machine.
    """

    cpus: frozenset[int] | None
    gpus: Collection[str] | None
    counters: Reading | None
    before: tuple[GpuReading, ...] = ()
    looks: list[GpuReading] = field(default_factory=list)
    groups: frozenset[int] = frozenset()
    spent_s: float = 0.0

    @classmethod
    def begin(
        cls, cpus: Collection[int] | None, gpus: Collection[str] | None = None, groups: Collection[int] = ()
    ) -> "DisturbanceMonitor":
        chosen = frozenset(cpus) if cpus else None
        before = () if gpus is None else read_gpus(only=gpus)
        # This is read before the counters here and after them later, so that no work of the workers counts as foreign.
        spent_s = sum_cpu_time(groups)
        return cls(chosen, gpus, read_counters(chosen), before, groups=frozenset(groups), spent_s=spent_s)

    def look(self) -> None:
        """Read the GPUs after a burst: under load, a GPU shows what it does not show when idle."""
        if self.gpus is not None:
            self.looks.extend(read_gpus(only=self.gpus, brief=True))

    def meanwhile(self, own_s: float) -> Interference | None:
        """Return what other processes did since the beginning, or None if it was too short or nothing can be read.

        `own_s` is the CPU time that replicates report for their bursts. Their process groups also show what their
        threads did during the bursts of other arms.
        """
        later = read_counters(self.cpus)
        own_s = max(own_s, sum_cpu_time(self.groups) - self.spent_s)
        return self.counters.until(later, own_s) if self.counters and later else None

    def disturbance(self, meanwhile: Interference | None) -> str:
        """Return the cause of a disturbance in words, or '' if there was none."""
        cause = meanwhile.disturbance if meanwhile else ""
        if cause or self.gpus is None:
            return cause
        return disturbance((*self.before, *self.looks, *read_gpus(only=self.gpus)))

    def spans(self) -> tuple[GpuSpan, ...]:
        return spans(self.looks)


def describe_foreign_gpu_process(gpus: Collection[str] | None) -> str:
    """Describe which process is on these GPUs while this run has none there, or return ''; always '' on a CPU."""
    return "" if gpus is None else describe_processes(read_gpus(only=gpus))


def free_gb(folder: Path) -> float:
    """Return how much is free on the disk that a folder is on, or would be on."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free / 1e9
