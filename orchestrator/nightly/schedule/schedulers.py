"""The schedulers of a machine, and how tfcompare's entries in them are read, installed and removed."""

import os
from collections.abc import Callable

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule.cron import Cron
from orchestrator.nightly.schedule.scheduler import Scheduler
from orchestrator.nightly.schedule.systemd import Systemd


def find_scheduler(name: str | None) -> Scheduler:
    """Return the requested scheduler, or else the first that answers here; raise UsageError if there is none."""
    by_name: dict[str, Callable[[], Scheduler]] = {
        "systemd": lambda: Systemd(system=os.getuid() == 0),
        "cron": Cron,
    }
    if name is not None and name not in by_name:
        raise UsageError(f"--scheduler {name!r}: choose {' or '.join(by_name)}")
    refused = []
    for key in [name] if name else by_name:
        scheduler = by_name[key]()
        if not (why := scheduler.obstacle()):
            return scheduler
        refused.append(why)
    raise UsageError(
        f"nothing here can call tfcompare every night: {'; '.join(refused)}. "
        "Start `tfcompare nightly serve` instead, in a container or a terminal that stays open"
    )


def list_schedulers() -> tuple[Scheduler, ...]:
    return Systemd(system=False), Systemd(system=True), Cron()
