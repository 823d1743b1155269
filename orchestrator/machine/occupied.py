"""A lock that all users of a machine share, and that keeps other runs away while the machine measures for a fleet.

Local runs hold the lock together; a unit of a fleet holds it alone.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.errors import EngineUnavailable
from orchestrator.file_lock import try_lock

# Every user may create a file in these folders; the best one comes first.
FOLDERS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - no private folder would do: all users have to find it
# This variable names a simulated host if several share a machine, as in tests.
VARIABLE = "TFCOMPARE_HOST"

OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def find_simulated_name() -> str:
    return os.environ.get(VARIABLE, "")


@contextmanager
def occupy(*, alone: bool) -> Iterator[None]:
    """Hold this machine's lock, alone or together with other runs; raise EngineUnavailable if it is taken."""
    handle = _open_lock()
    if handle is None:
        yield
        return
    try:
        if not try_lock(handle, shared=not alone):
            for_fleet = "this machine is measuring for a fleet, which needs it alone"
            why = "another run is measuring on this machine" if alone else for_fleet
            occupied = EngineUnavailable(why, "wait until it has finished")
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
        # The first attempt is without O_CREAT, which the kernel may refuse for another user's file in a shared folder.
        with suppress(OSError):
            return os.open(path, OPEN)
        with suppress(OSError):
            return os.open(path, OPEN | os.O_CREAT, 0o644)
    return None
