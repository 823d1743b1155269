"""Virtual environments in the cache that no longer belong to any version."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from orchestrator.catalog.user_data import has_lock
from orchestrator.catalog.version import Flavour, Version
from orchestrator.engines.folder_lock import FolderLock, is_locked
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.donor import MARKER
from orchestrator.engines.venv.engine import environment_path, environments_folder
from orchestrator.engines.venv.interpreters import Interpreter


def find_outdated(versions: Iterable[Version]) -> list[Path]:
    """Return the environments whose lock is neither in the tables nor of a target, or whose Python is gone."""
    by_lock: defaultdict[str, list[Flavour]] = defaultdict(list)
    for version in versions:
        for flavour in version.flavours:
            by_lock[flavour.lock.stem].append(flavour)
    outdated = []
    for path in list_environments():
        lock = path.name.rpartition("-")[0]
        of_target = lock not in by_lock and has_lock(lock) and (path / "bin" / "python").exists()
        if not of_target and not _is_wanted(path, by_lock[lock]):
            outdated.append(path)
    return outdated


def list_environments() -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(path for path in environments_folder().iterdir() if path.is_dir())
    return []


def find_environments(flavour: Flavour) -> list[Path]:
    """Return the environments that were installed from a flavour's lock, complete or not.

    Environments of that name whose Python is gone are included.
    """
    named = [path for path in list_environments() if path.name.rpartition("-")[0] == flavour.lock.stem]
    return [path for path in named if not (path / "bin" / "python").exists() or _is_wanted(path, [flavour])]


def _is_wanted(path: Path, flavours: Iterable[Flavour]) -> bool:
    python = path / "bin" / "python"
    if not python.exists():
        return False
    # The Python in an environment shows from which one it was made, which is part of the environment's name.
    made_with = interpreters.probe(python)
    return not isinstance(made_with, Interpreter) or any(
        environment_path(flavour, made_with) == path for flavour in flavours
    )


def in_use(path: Path) -> bool:
    """Return whether a process installs an environment, has prepared it, or runs in it."""
    return is_locked(path) or _has_worker(path)


def _has_worker(path: Path) -> bool:
    """Return whether a worker runs in an environment, by whatever path it was started.

    A worker may outlive the process that has the lock.
    """
    folder = Path(os.path.realpath(path))
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return any(_find_folder(process).is_relative_to(folder) for process in processes)


def _find_folder(process: Path) -> Path:
    """Return the folder of the program that a process was started with, or the root if it is unknown."""
    with suppress(OSError, ValueError):
        program = Path(os.fsdecode((process / "cmdline").read_bytes().partition(b"\0")[0]))
        path = program if program.is_absolute() else Path(os.readlink(process / "cwd"), program)
        # Only the folder is resolved, since an environment's Python is itself a link to another folder.
        return Path(os.path.realpath(path.parent))
    return Path("/")


def remove_environment(path: Path) -> bool:
    """Remove an environment unless it is in use; return whether it is gone."""
    try:
        lock = FolderLock(path)
        try:
            if path.is_symlink() or not lock.exclude() or _has_worker(path):
                return False
            # The marker is removed first, since a removal that is cut short must leave nothing that looks ready.
            (path / MARKER).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            lock.release()
    except OSError:
        return False
    return not path.exists()
