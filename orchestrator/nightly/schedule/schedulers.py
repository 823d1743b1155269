"""The schedulers of a machine, and how tfcompare's entries in them are read, installed and removed."""

import os
from collections.abc import Callable

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule.cron import Cron
from orchestrator.nightly.schedule.scheduler import Scheduler
from orchestrator.nightly.schedule.systemd import Systemd


def find_scheduler(name: str | None) -> Scheduler:
    """Return the requested scheduler, or else the first that answers here; raise UsageError if there is none."""
    known: dict[str, Callable[[], Scheduler]] = {"systemd": _systemd, "cron": Cron}
    if name is not None and name not in known:
        raise UsageError(f"--scheduler {name!r}: it is {' or '.join(known)}")
    refused = []
    for key in [name] if name else known:
        found = known[key]()
        if not (why := found.obstacle()):
            return found
        refused.append(why)
    raise UsageError(
        f"nothing here can call tfcompare every night: {'; '.join(refused)}. "
        "`tfcompare nightly serve` waits by itself, in a container or a terminal that stays open"
    )


def every() -> tuple[Scheduler, ...]:
    return Systemd(system=False), Systemd(system=True), Cron()


def _systemd() -> Scheduler:
    return Systemd(system=os.getuid() == 0)
