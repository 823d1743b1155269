"""Write images/locks/ from images/versions.toml: every package of every version, pinned with all its hashes.

`--check` needs no network: each lock holds a digest of the inputs from which it was made.
"""

import argparse
from pathlib import Path
from typing import get_args

from orchestrator import catalog
from orchestrator.bundled import IMAGES
from orchestrator.catalog.locking import Lock, pip_lock, resolve_lock
from orchestrator.catalog.uv import Unresolved
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.errors import UsageError

FLAVOURS: tuple[FlavourName, ...] = get_args(FlavourName)


def plan(versions: list[Version], flavours: tuple[FlavourName, ...]) -> tuple[list[Lock], list[Lock]]:
    """Return the locks of pip for every Python in use, and the locks of the versions."""
    tools, locks = {}, []
    for version in versions:
        for flavour in (option for name in flavours for option in version.on(name)):
            python = flavour.python.number
            tools[python] = pip_lock(python)
            locks.append(
                Lock(
                    path=flavour.lock,
                    command=f"python tools/lock.py {version.number} --flavour {flavour.name}",
                    python=python,
                    requirements=flavour.requirements,
                    constraints=tools[python].requirements,
                )
            )
    return list(tools.values()), locks


def write(lock: Lock, *constraints) -> None:
    try:
        text = resolve_lock(lock, *constraints)
    except Unresolved as error:
        raise SystemExit(f"{lock.path.name}: cannot be resolved\n{error}") from error
    lock.path.parent.mkdir(parents=True, exist_ok=True)
    lock.path.write_text(text)
    print(shown(lock.path))


def shown(path: Path) -> Path:
    """Return a path as it is printed; locks of the user's own versions lie outside the repository."""
    return path.relative_to(IMAGES.parent) if path.is_relative_to(IMAGES.parent) else path


def versions_named(names: list[str]) -> list[Version]:
    shipped = catalog.builtin_catalogue().version
    versions = [catalog.find_version(name) for name in names]
    if not all(versions):
        raise SystemExit(f"unknown version among {', '.join(names)}; images/versions.toml has {', '.join(shipped)}")
    return versions or [version for version in catalog.all_versions() if version.number in shipped]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="*", help="all if none is named")
    parser.add_argument("--flavour", choices=FLAVOURS, help="both if not given")
    parser.add_argument("--stale", action="store_true", help="only those whose inputs have changed")
    parser.add_argument(
        "--check", action="store_true", help="only say which locks are stale or missing; exit 1 if any is"
    )
    options = parser.parse_args()
    try:
        tools, locks = plan(versions_named(options.version), (options.flavour,) if options.flavour else FLAVOURS)
        if options.check:
            stale = [lock for lock in tools + locks if not lock.is_current()]
            for lock in stale:
                print(f"{shown(lock.path)} is stale or missing: run {lock.command}")
            raise SystemExit(1 if stale else 0)
        catalog.LOCKS.mkdir(exist_ok=True)
        # A current lock of pip is left alone, because the locks of other versions were made to agree with it.
        for lock in tools:
            if not lock.is_current():
                write(lock)
        for lock in locks:
            if not (options.stale and lock.is_current()):
                # Every lock gets the same pip, setuptools and wheel, whichever packages depend on them.
                write(lock, catalog.LOCKS / f"pip-py{lock.python}.txt")
    except UsageError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
