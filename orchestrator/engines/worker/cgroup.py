"""A cgroup around a worker: nothing that the worker starts can leave it, and all of it ends with it.

Only in a hierarchy of version 2, where this user may make a cgroup, and where cgroups share no CPUs out: a worker
would otherwise compete with the rest of the machine for them in another way than without a cgroup.
"""

import os
import secrets
import signal
import time
from contextlib import suppress
from pathlib import Path

from orchestrator.engines.scratch import PREFIX, find_named, lock_directory

ROOT = Path("/")
END_S, POLL_S = 5.0, 0.005


class Cgroup:
    def __init__(self, directory: Path, lock: int) -> None:
        self._directory = directory
        self._lock: int | None = lock

    @classmethod
    def around(cls, pid: int, root: Path = ROOT) -> "Cgroup | None":
        """Put a process into a new cgroup; return None where that is not possible."""
        parent = find_parent(root)
        if parent is None:
            return None
        directory = parent / f"{PREFIX}{secrets.token_hex(4)}"
        try:
            directory.mkdir()
        except OSError:
            return None
        lock = lock_directory(directory)
        if lock is None:
            return None
        made = cls(directory, lock)
        try:
            if "cpu" not in (directory / "cgroup.controllers").read_text().split():
                (directory / "cgroup.procs").write_text(str(pid))
                return made
        except OSError:
            pass
        made.end()
        return None

    def end(self) -> int:
        """End what is in the cgroup, remove it, and return how many processes were in it."""
        # Two threads may end a worker at the same time.
        lock, self._lock = self._lock, None
        if lock is None:
            return 0
        pids: set[int] = set()
        until = time.monotonic() + END_S
        while self._directory.exists() and time.monotonic() < until:
            pids |= self._kill()
            # Those that a worker has made inside come first.
            for inner, _, _ in os.walk(self._directory, topdown=False):
                with suppress(OSError):
                    os.rmdir(inner)
            time.sleep(POLL_S if self._directory.exists() else 0)
        os.close(lock)
        return len(pids)

    def _kill(self) -> set[int]:
        pids: set[int] = set()
        for inner in self._directory.rglob("cgroup.procs"):
            with suppress(OSError):
                pids |= set(map(int, inner.read_text().split()))
        with suppress(OSError):
            # All at once, so that none can start another. Kernels before 5.14 lack it.
            (self._directory / "cgroup.kill").write_text("1")
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return pids


def find_parent(root: Path = ROOT) -> Path | None:
    """Return the directory of this process's own cgroup, in the hierarchy of version 2."""
    with suppress(OSError, ValueError, StopIteration):
        mounts = (line.split() for line in (root / "proc/self/mountinfo").read_text().splitlines())
        mount = next(words for words in mounts if words[words.index("-") + 1] == "cgroup2")
        groups = (line.split(":", 2) for line in (root / "proc/self/cgroup").read_text().splitlines())
        own = next(path for _, controllers, path in groups if controllers == "")
        # The hierarchy may be mounted from this cgroup on, as in a container.
        inside = os.path.relpath(own, mount[3])
        if not inside.startswith(".."):
            return root / mount[4].lstrip("/") / inside
    return None


def reap(root: Path = ROOT) -> int:
    """End what is in the cgroups of runs whose process has ended, remove them, and return how many processes it was."""
    parent = find_parent(root)
    ended = 0
    for directory in find_named(parent) if parent else ():
        if (lock := lock_directory(directory)) is not None:
            ended += Cgroup(directory, lock).end()
    return ended
