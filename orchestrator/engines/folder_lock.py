"""A lock on a folder for several processes: shared by its users, exclusive for the one that writes or removes it.

It is a kernel lock on a file next to the folder, and is released however its process ends. The file is never removed: a
process that still has the old file open would not notice locks on a new one.
"""

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.file_lock import try_lock, unlock

# A process that waits for a lock tries again this often, and reports the wait only after PATIENCE_S, because
# `environments prune` takes each lock for a moment to check it.
TRY_S, PATIENCE_S = 0.1, 1.0


class FolderLock:
    def __init__(self, folder: Path) -> None:
        """Open the lock file of a folder; raise OSError if this user can neither write nor read it."""
        # This is the error if the lock file shows that this user cannot write the folder.
        self.refusal: OSError | None = None
        # Programs that this process starts do not inherit the file: Python opens files close-on-exec.
        self._file = self._open(folder.with_name(folder.name + ".lock"))
        # This also closes a lock that is dropped without being released; at exit, the kernel closes it.
        self._close = weakref.finalize(self, os.close, self._file)
        self._close.atexit = False

    def _open(self, path: Path) -> int:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            # The cache may be another user's. A file that can be read can be locked, which keeps its owner away.
            with suppress(OSError):
                file = os.open(path, os.O_RDONLY)
                self.refusal = error.with_traceback(None)
                return file
            raise

    def share(self) -> bool:
        """Take or keep the lock as one of several users; return False if another process holds it alone."""
        return self._take(shared=True)

    def exclude(self) -> bool:
        """Take the lock alone; return False, and hold none, if it is held elsewhere."""
        return self._take(shared=False)

    def release(self) -> None:
        """Close the lock file; a second call does nothing."""
        self._close()

    def _take(self, *, shared: bool) -> bool:
        if try_lock(self._file, shared=shared):
            return True
        # A shared lock that could not become exclusive may or may not be lost, depending on the system.
        unlock(self._file)
        return False


def is_locked(folder: Path) -> bool:
    """Return whether the lock of a folder is held anywhere, this process included."""
    with suppress(OSError):
        lock = FolderLock(folder)
        try:
            return not lock.exclude()
        finally:
            lock.release()
    return False


def wait(done: Callable[[], bool], report: Callable[[], None]) -> None:
    """Call `done` until it returns true; if that takes a while, call `report` once."""
    begun = time.monotonic()
    reported = False
    while not done():
        if not reported and time.monotonic() - begun > PATIENCE_S:
            report()
            reported = True
        time.sleep(TRY_S)


@contextmanager
def exclusive(folder: Path, report: Callable[[], None]) -> Iterator[None]:
    """Wait for the lock of a folder and hold it alone; hold none where this user cannot open its file."""
    try:
        lock = FolderLock(folder)
    except OSError:
        yield
        return
    try:
        wait(lock.exclude, report)
        yield
    finally:
        lock.release()
