"""Nightlies that were locked here on another day, without an index."""

import os
import time
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog import lock_on_demand, locking, user_data
from orchestrator.catalog.table import FlavourTable
from orchestrator.catalog.version import Version
from orchestrator.terminal.view import View

DAY_S = 86400


def lock(number: str, used_days_ago: float = 0.0, requirements: str = "") -> Version:
    """As if it had been locked and used then."""
    header = f"{locking.WRITTEN_BY}{lock_on_demand.ON_FIRST_USE}{number}\n"
    flavour = FlavourTable(pythons=("3.11",), requirements=(f"tf-nightly=={number}",))
    lock_on_demand._store_lock(number, "cpu", flavour, header + requirements, View())
    [version] = catalog.resolve_versions([number], fewest=1)
    age(version, used_days_ago)
    return version


def age(version: Version, days: float) -> None:
    then = time.time() - days * DAY_S
    for flavour in version.flavours:
        os.utime(flavour.lock, (then, then))


def table() -> str:
    return user_data.find_user_table().read_text()


def locks() -> list[str]:
    return sorted(path.name for path in Path(user_data.locks()).iterdir())
