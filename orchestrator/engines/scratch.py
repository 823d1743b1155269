"""Temporary folders that carry their owner: a lock of the kernel, released with its process, however that ends."""

import os
import re
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Self

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.file_lock import try_lock

# With the number of the process, for a user who looks at the folders.
PREFIX, NAMED = f"tfcompare-{os.getpid()}-", re.compile(r"tfcompare-\d+-\w{8}")
# Of a folder that is locked at once.
MOST_TRIES = 10


class Scratch:
    """A temporary folder, which is removed with all that is in it by `cleanup`, or when this process ends."""

    def __init__(self) -> None:
        for _ in range(MOST_TRIES):
            folder = _make()
            lock = lock_folder(folder)
            if lock is not None:
                break
            # Another run removed it as abandoned before it was locked, or this file system cannot lock anything.
            with suppress(OSError):
                folder.rmdir()
        else:
            raise UsageError(f"{folder.parent}: a folder in there cannot be locked; TMPDIR names another place")
        self.path = folder
        self.cleanup = weakref.finalize(self, _remove, folder, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.cleanup()


def _make() -> Path:
    return Path(tempfile.mkdtemp(prefix=PREFIX))


def lock_folder(folder: Path) -> int | None:
    """Return a descriptor that holds the lock of a folder; None if it is locked, gone, or not this user's."""
    try:
        handle = os.open(folder, files.FOLDER)
    except OSError:
        return None
    with suppress(OSError):
        own = os.fstat(handle).st_uid == os.getuid()
        # Another folder may have its name since it was opened.
        if own and try_lock(handle) and os.path.samestat(os.fstat(handle), os.lstat(folder)):
            return handle
    os.close(handle)
    return None


def _remove(folder: Path, lock: int) -> None:
    files.remove_tree(folder)
    os.close(lock)


def reap_folders() -> list[Path]:
    """Remove the temporary folders of processes that have ended, and return those that are gone."""
    removed = []
    root = Path(tempfile.gettempdir())
    for path in find_named(root):
        if (lock := lock_folder(path)) is not None:
            _remove(path, lock)
            removed += [] if os.path.lexists(path) else [path]
    return removed


def find_named(root: Path) -> list[Path]:
    """Return what has the name of a folder with an owner."""
    with suppress(OSError):
        return sorted(root / name for name in filter(NAMED.fullmatch, os.listdir(root)))
    return []
