"""Temporary folders that show their owner by a kernel lock, which is released however its process ends."""

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

# The process number is for users who look at the folders.
PREFIX, NAMED = f"tfcompare-{os.getpid()}-", re.compile(r"tfcompare-\d+-\w{8}")
# This limits how often a folder is made again because it could not be locked.
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
            raise UsageError(f"{folder.parent}: a folder in there cannot be locked; set TMPDIR to another folder")
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
        # Another folder may have got its name since it was opened.
        if own and try_lock(handle) and os.path.samestat(os.fstat(handle), os.lstat(folder)):
            return handle
    os.close(handle)
    return None


def _remove(folder: Path, lock: int) -> None:
    files.remove_tree(folder)
    os.close(lock)


def reap_folders() -> list[Path]:
    """Remove the temporary folders of processes that have ended, and return those that were removed."""
    removed = []
    root = Path(tempfile.gettempdir())
    for path in find_owned_folders(root):
        if (lock := lock_folder(path)) is not None:
            _remove(path, lock)
            removed += [] if os.path.lexists(path) else [path]
    return removed


def find_owned_folders(root: Path) -> list[Path]:
    """Return the entries of a folder that are named like a folder with an owner."""
    with suppress(OSError):
        return sorted(root / name for name in filter(NAMED.fullmatch, os.listdir(root)))
    return []
