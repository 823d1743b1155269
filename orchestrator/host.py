"""Facts about this machine: stable ones that name it, and the state it is in."""

import hashlib
import os
import platform
from pathlib import Path


def host_facts() -> dict[str, str | int | float | None]:
    cpu = _cpu_model()
    stable = f"{cpu} {os.cpu_count()} {_read('/sys/class/dmi/id/board_name')} {_read('/etc/machine-id')}"
    return {
        "id": hashlib.sha256(stable.encode()).hexdigest()[:12],
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        "system": platform.system(),
        "kernel": platform.release(),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cgroup_quota": _read("/sys/fs/cgroup/cpu.max"),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None
