"""Versions on another architecture than that of the table: which ones exist, and what is installed for them.

Their locks are made on first use, and their names end with the architecture.
"""

import re
from collections.abc import Iterable, Sequence

from orchestrator.catalog import user_data
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.machine.supported import find_architecture

# A machine without an older Python cannot download one on every architecture.
OLDEST_PYTHON = (3, 8)
FOR_CPU = re.compile(r"tensorflow-cpu(?===)")


def name_lock(stem: str) -> str:
    """Return the name of a lock for this machine: that of the table's architecture has no suffix."""
    here = find_architecture()
    return stem if here.is_usual or f"-{here.name}" in stem else f"{stem}-{here.name}"


def adapt(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return requirements with the names for this machine: only `tensorflow` has wheels for all architectures."""
    usual = find_architecture().is_usual
    return tuple(each if usual else FOR_CPU.sub("tensorflow", each) for each in requirements)


def has_wheels(number: str) -> bool:
    """Return whether a release has wheels for this machine's architecture."""
    return read_number_pair(number) >= find_architecture().first


def order_pythons(pythons: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the Pythons that a version of the table may run on here: its own, then the others, the nearest first.

    Pythons that a machine may not find on another architecture come last there.
    """
    usual = read_number_pair(pythons[0])
    others = sorted(known, key=lambda python: abs(read_number_pair(python)[1] - usual[1]))
    ordered = dict.fromkeys((*pythons, *others))
    if find_architecture().is_usual:
        return list(ordered)
    # The sort is stable, so it keeps the order otherwise.
    return sorted(ordered, key=lambda python: read_number_pair(python) < OLDEST_PYTHON)


def find_lacking_architecture(version: Version, device: FlavourName) -> tuple[str, str] | None:
    """Return why this machine's architecture lacks a version, and what to do; None if it does not lack it."""
    here = find_architecture()
    if here.is_usual or version.image:
        return None
    if device == "gpu":
        return f"TensorFlow has no wheels with CUDA for Linux on {here.name}", "leave --gpu out, or measure on x86-64"
    if not has_wheels(version.number):
        oldest = ".".join(map(str, here.first))
        return f"TensorFlow has wheels for Linux on {here.name} from {oldest} on", "name newer ones, or use x86-64"
    if any(
        flavour.lock.is_relative_to(user_data.locks()) and not flavour.lock.exists() for flavour in version.flavours
    ):
        return f"it could not be locked for Linux on {here.name}", "check the network, and run again"
    return None


def read_number_pair(number: str) -> tuple[int, int]:
    """Return the first two parts of a version's number or of a Python's."""
    major, minor = number.split(".")[:2]
    return int(major), int(minor)
