"""Environments made from others: hard links to all that they share, so that only the difference is installed.

A target that changes one package of a version thus takes seconds and only that package's space. Nothing that is
installed later writes into a shared file: pip removes a file's name before it writes a new file of that name.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from orchestrator.catalog import lockfile
from orchestrator.catalog.targets import TENSORFLOWS
from orchestrator.engines.folder_lock import FolderLock
from orchestrator.engines.venv.interpreters import Interpreter

MARKER = "tfcompare.json"
# These belong to an environment itself: its Python, what it was made with, and code that a driver compiled for it.
NOT_SHARED = frozenset({"bin", "lib64", "pyvenv.cfg", MARKER, "gpu-code"})


@dataclass(frozen=True)
class Donor:
    """An environment to start from, the packages to replace in it or to add, and those to remove."""

    path: Path
    changed: frozenset[str]
    gone: frozenset[str]


def describe_python(interpreter: Interpreter) -> str:
    return f"{interpreter.prefix} {interpreter.build or interpreter.version}"


def read_environment(path: Path) -> dict[str, object]:
    """Return what a complete environment records about itself, or an empty dict."""
    with suppress(OSError, ValueError):
        marker = json.loads((path / MARKER).read_text())
        if isinstance(marker, dict):
            return marker
    return {}


@contextmanager
def hold_donor(folder: Path, wanted: Mapping[str, str], interpreter: Interpreter) -> Iterator[Donor | None]:
    """Yield the environment of this Python that shares most with what is wanted, its TensorFlow included, or None.

    Its lock keeps other processes from removing it.
    """
    alike = sorted(_find_donors(folder, wanted, interpreter), key=lambda donor: len(donor.changed))
    found = next((donor for donor in alike if not _shares_files(donor)), None)
    if found is None:
        yield None
        return
    lock = FolderLock(found.path)
    try:
        is_kept = lock.share() and (found.path / MARKER).is_file()
        yield found if is_kept else None
    finally:
        lock.release()


def _find_donors(folder: Path, wanted: Mapping[str, str], interpreter: Interpreter) -> Iterator[Donor]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        marker = read_environment(path)
        pins = marker.get("pins")
        if marker.get("python") != describe_python(interpreter) or not isinstance(pins, dict):
            continue
        same = {name for name, pin in wanted.items() if pins.get(name) == pin}
        if TENSORFLOWS & same and len(same) >= lockfile.LEAST_SHARED * len(wanted):
            yield Donor(path, frozenset(wanted.keys() - same), frozenset(pins.keys() - wanted.keys()))


def _shares_files(donor: Donor) -> bool:
    """Return whether a package to remove has files that another one has as well, which would lose them.

    `tensorflow` and `tensorflow-cpu` are such packages; an environment has both if one of its packages needs the other.
    """
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    for folder in donor.path.glob("lib/python*/site-packages") if donor.gone else ():
        for package in metadata.distributions(path=[str(folder)]):
            lines = (package.read_text("RECORD") or "").splitlines()
            is_gone = lockfile.normalize(package.metadata["Name"] or "") in donor.gone
            seen[is_gone].update(line.partition(",")[0] for line in lines)
    return not seen[True].isdisjoint(seen[False])


def link_from(donor: Path, path: Path) -> None:
    """Give a new, empty environment everything that another one holds, apart from its Python.

    A file system without hard links gets copies.
    """
    for entry in donor.iterdir():
        if entry.name not in NOT_SHARED and not entry.is_symlink():
            _link_tree(entry, path / entry.name)
    _copy_scripts(donor, path)


def _link_tree(source: Path, target: Path) -> None:
    if not source.is_dir():
        _link(source, target)
        return
    for parent, folders, names in os.walk(source):
        inside = target / os.path.relpath(parent, source)
        inside.mkdir(parents=True, exist_ok=True)
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*names, *links):
            _link(Path(parent, name), inside / name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _copy_scripts(donor: Path, path: Path) -> None:
    """Copy the programs of packages, whose first line names the Python of their environment."""
    for script in (donor / "bin").iterdir():
        target = path / "bin" / script.name
        if script.is_symlink() or not script.is_file() or target.exists():
            continue
        first, end, rest = script.read_bytes().partition(b"\n")
        target.write_bytes(first.replace(os.fsencode(donor), os.fsencode(path)) + end + rest)
        target.chmod(script.stat().st_mode & 0o777)


def select(pins: Sequence[lockfile.Pin], names: frozenset[str]) -> str:
    """Return the lines of a lock that are about these packages, in its order; later pins take precedence."""
    chosen = {lockfile.normalize(pin.name): pin for pin in pins}
    return "".join(f"{lockfile.write_pin(pin)}\n" for pin in pins if pin in [chosen[name] for name in names])
