"""Cgroups around a worker: nothing that the worker starts can leave them, and all of it ends with them.

One is made in each hierarchy where this user may make it: in version 2, and in the hierarchy of version 1 that counts
processes. A cgroup with its own share of the CPUs is not used, because it would change how a worker competes with the
rest of the machine for them. Each cgroup limits the worker's processes if the kernel counts them there.
"""

import os
import secrets
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.engines.scratch import PREFIX, find_owned_folders, lock_folder

ROOT = Path("/")
END_S, POLL_S = 5.0, 0.005
LIMIT = "pids.max"


@dataclass
class _Group:
    """A cgroup's folder, and the lock that shows later runs that it is in use."""

    folder: Path
    lock: int


class Cgroup:
    def __init__(self, groups: list[_Group]) -> None:
        self._groups = groups
        self.limits_tasks = False

    @classmethod
    def around(cls, pid: int, tasks: int, root: Path = ROOT) -> "Cgroup | None":
        """Put a process into new cgroups, which allow this many tasks; return None if none can be made."""
        made = cls([group for parent in find_parents(root) if (group := _enter(parent, pid))])
        for group in made._groups:
            made.limits_tasks |= _limit(group.folder, tasks)
        return made if made._groups else None

    @property
    def folders(self) -> list[Path]:
        return [group.folder for group in self._groups]

    def end(self) -> int:
        """End what is in the cgroups, remove them, and return how many processes were in them."""
        # Two threads may end a worker at the same time.
        groups, self._groups = self._groups, []
        pids: set[int] = set()
        until = time.monotonic() + END_S
        while (left := [group.folder for group in groups if group.folder.exists()]) and time.monotonic() < until:
            for folder in left:
                pids |= _kill(folder)
                # Cgroups that the worker made inside have to be removed first.
                for inner, _, _ in os.walk(folder, topdown=False):
                    with suppress(OSError):
                        os.rmdir(inner)
            time.sleep(POLL_S if any(folder.exists() for folder in left) else 0)
        for group in groups:
            os.close(group.lock)
        return len(pids)


def _enter(parent: Path, pid: int) -> _Group | None:
    """Make a cgroup in another one and put a process into it; return None where that is not possible."""
    folder = parent / f"{PREFIX}{secrets.token_hex(4)}"
    try:
        folder.mkdir()
    except OSError:
        return None
    lock = lock_folder(folder)
    if lock is None:
        return None
    group = _Group(folder, lock)
    try:
        if not _has_cpu_share(folder):
            (folder / "cgroup.procs").write_text(str(pid))
            return group
    except OSError:
        pass
    Cgroup([group]).end()
    return None


def _has_cpu_share(folder: Path) -> bool:
    """Return whether a cgroup has its own share of the CPUs; the cgroups of version 1 that are used here have none."""
    with suppress(FileNotFoundError):
        return "cpu" in (folder / "cgroup.controllers").read_text().split()
    return False


def _limit(folder: Path, tasks: int) -> bool:
    """Allow this many processes and threads; return False if they are not counted here."""
    with suppress(OSError):
        if (folder / LIMIT).exists():
            (folder / LIMIT).write_text(str(tasks))
            return True
    return False


def _kill(folder: Path) -> set[int]:
    # A limit of 0 keeps processes, including those in nested cgroups, from starting others.
    _limit(folder, 0)
    pids: set[int] = set()
    for inner in folder.rglob("cgroup.procs"):
        with suppress(OSError):
            pids |= set(map(int, inner.read_text().split()))
    with suppress(OSError):
        # This ends all processes in one step; kernels before 5.14 and version 1 lack it.
        if (folder / "cgroup.kill").exists():
            (folder / "cgroup.kill").write_text("1")
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return pids


def find_parents(root: Path = ROOT) -> list[Path]:
    """Return the folders of this process's own cgroup, in the hierarchies in which one can be made for a worker."""
    with suppress(OSError, ValueError):
        lines = (root / "proc/self/mountinfo").read_text().splitlines()
        own = dict(line.split(":", 2)[1:] for line in (root / "proc/self/cgroup").read_text().splitlines())
        parents: list[Path] = []
        # A hierarchy may be mounted in several places.
        seen: set[str] = set()
        for words in map(str.split, lines):
            kind, _, options = words[words.index("-") + 1 :][:3]
            controllers = next((names for names in own if _is_counting(names, kind, options)), None)
            if controllers is None or controllers in seen:
                continue
            seen.add(controllers)
            # The mount may begin at this cgroup and not at the top, as in a container.
            inside = os.path.relpath(own[controllers], words[3])
            if not inside.startswith(".."):
                parents.append(root / words[4].lstrip("/") / inside)
        return parents
    return []


def _is_counting(controllers: str, kind: str, options: str) -> bool:
    """Return whether this is version 2, or the hierarchy of version 1 that counts processes, without CPU shares."""
    if kind == "cgroup2":
        return controllers == ""
    names = set(controllers.split(","))
    return kind == "cgroup" and "pids" in names and "cpu" not in names and names <= set(options.split(","))


def reap_cgroups(root: Path = ROOT) -> int:
    """End the processes in cgroups that ended runs left, remove the cgroups, and return the number of processes."""
    groups = [
        _Group(folder, lock)
        for parent in find_parents(root)
        for folder in find_owned_folders(parent)
        if (lock := lock_folder(folder)) is not None
    ]
    return Cgroup(groups).end()
