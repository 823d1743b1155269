"""Keeps a machine to itself while it measures for a fleet: a lock that all users of the machine share.

A run of this machine's own holds the lock together with others of its kind; a unit of a fleet holds it alone.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.errors import EngineUnavailable
from orchestrator.file_lock import try_lock

# Folders in which every user may create a file, the best first.
FOLDERS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - no private folder would do: all users have to find it
# The name of a simulated host, where several share a machine, as in tests.
VARIABLE = "TFCOMPARE_HOST"

OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def find_simulated_name() -> str:
    return os.environ.get(VARIABLE, "")


@contextmanager
def occupy(*, alone: bool) -> Iterator[None]:
    """Hold this machine's lock, alone or together with other runs; raise EngineUnavailable if it cannot be had now."""
    handle = _open_lock()
    if handle is None:
        yield
        return
    try:
        if not try_lock(handle, shared=not alone):
            what = "another run" if alone else "for a fleet, which needs it alone"
            occupied = EngineUnavailable(f"this machine is measuring {what}", "wait for its end")
            occupied.is_occupied = True
            raise occupied
        yield
    finally:
        os.close(handle)


def _open_lock() -> int | None:
    """Return a descriptor of the lock's file; None where no folder takes one, which leaves runs unprotected."""
    name = "-".join(filter(None, ("tfcompare", find_simulated_name().replace("/", "_"))))
    for folder in FOLDERS:
        path = folder / f"{name}.lock"
        # Another user's file is opened, and never created: the kernel may refuse that in a shared folder.
        with suppress(OSError):
            return os.open(path, OPEN)
        with suppress(OSError):
            return os.open(path, OPEN | os.O_CREAT, 0o644)
    return None
