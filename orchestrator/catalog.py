"""The versions that tfcompare knows; the only reader of images/."""

import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError
from orchestrator.model import Flavour, FlavourName, Python, Version

# Beside this package, in a checkout and in an installed wheel alike.
IMAGES = Path(__file__).resolve().parent.parent / "images"
LOCKS = IMAGES / "locks"
DOCKERFILE = IMAGES / "Dockerfile"


@cache
def all_versions() -> tuple[Version, ...]:
    """Every version of the table, oldest first."""
    table = tomllib.loads((IMAGES / "versions.toml").read_text())
    pythons = {
        number: Python(number=number, image=entry["image"], digest=entry["digest"])
        for number, entry in table["python"].items()
    }
    versions = [_version(number, entry, pythons) for number, entry in table["version"].items()]
    return tuple(sorted(versions, key=lambda version: _sortable(version.number)))


def _version(number: str, entry: dict[str, Any], pythons: dict[str, Python]) -> Version:
    flavours: list[Flavour] = []
    names: tuple[FlavourName, ...] = ("cpu", "gpu")
    for name in names:
        for python in entry.get(name, {}).get("pythons", ()):
            own = entry[name]
            flavours.append(
                Flavour(
                    name=name,
                    python=pythons[python],
                    lock=LOCKS / f"{number}-{name}-py{python}.txt",
                    pip_lock=LOCKS / f"pip-py{python}.txt",
                    image=own.get("image", pythons[python].image),
                    digest=own["digest"] if "image" in own else pythons[python].digest,
                )
            )
    return Version(
        number=number,
        aliases=tuple(entry["aliases"]),
        keras=entry["keras"],
        flavours=tuple(flavours),
    )


def _sortable(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def resolve(names: Sequence[str], fewest: int = 2) -> tuple[Version, ...]:
    """The versions named, in the order given: the first is the baseline."""
    known = {name: version for version in all_versions() for name in (version.number, *version.aliases)}
    found: list[Version] = []
    for name in names:
        if name not in known:
            raise UsageError(
                f"unknown version {name!r}{did_you_mean(name, known)}; "
                "`tfcompare list versions` shows those that can be run"
            )
        version = known[name]
        if version in found:
            raise UsageError(f"version {version.number} is named twice (as {name!r}); name each version once")
        found.append(version)
    if len(found) < fewest:
        raise UsageError("a comparison takes at least two versions, e.g. --versions 1.14,2.0")
    return tuple(found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def lock_hash(flavour: Flavour) -> str:
    """A digest of everything that is installed for a flavour, the installer included."""
    digest = hashlib.sha256()
    for lock in (flavour.pip_lock, flavour.lock):
        digest.update(lock.read_bytes())
    return digest.hexdigest()
