"""Layers: folders of packages that workloads require and a target lacks, locked against what the target has.

A layer never changes what is measured: it holds only packages that the target lacks, in releases that agree with all
packages of the target, and it comes last on the path.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from packaging.requirements import Requirement
from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator import contract, files
from orchestrator.catalog import lockfile, locking
from orchestrator.catalog.user_data import cache
from orchestrator.catalog.uv import (
    INSTALL,
    INSTALL_TIMEOUT_S,
    Unresolved,
    choose_index,
    find_uv,
    flatten,
    name_index,
    run_uv,
    target_arguments,
)
from orchestrator.child_environment import pass_variables
from orchestrator.errors import UsageError
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions

LOCK = "lock.txt"
MOST_REASON = 400


class Uv(Protocol):
    """uv on this machine, or in a container."""

    @property
    def place(self) -> str:
        """Return a name for where uv runs, because results from one place do not hold in another."""

    def run(self, arguments: Sequence[str], folder: Path, timeout_s: float) -> str:
        """Run uv in a folder, to which all paths are relative, and return its output; raise Unresolved if it fails."""


@dataclass(frozen=True)
class LocalUv:
    options: EngineOptions
    place = "here"

    def run(self, arguments: Sequence[str], folder: Path, timeout_s: float) -> str:
        uv = find_uv()
        if uv is None:
            raise UsageError("uv, which installs what workloads require, is not on PATH: pip install uv")
        return run_uv(uv, arguments, folder, self.options, timeout_s)


@dataclass(frozen=True)
class Layer:
    """The folder of the packages that a workload lacks in a target, or a refusal; neither if it lacks none."""

    folder: Path | None = None
    refusal: str = ""


def describe_layers(layers: Mapping[str, Layer], folder_of: Callable[[Path], str] = str) -> dict[str, str]:
    """Return the variable that tells a worker which folder belongs to which workload, as the worker sees it."""
    told = {
        workload: {"folder": folder_of(layer.folder)} if layer.folder else {"refused": layer.refusal}
        for workload, layer in layers.items()
        if layer.folder or layer.refusal
    }
    return {contract.LAYERS: json.dumps(told)} if told else {}


def make_layer(requirements: Sequence[str], facts: EnvironmentFacts, options: EngineOptions, uv: Uv) -> Layer:
    """Return the layer for these requirements in an environment, and make it first if necessary.

    A resolution is kept, so that a target keeps its packages. It is used again only for the same requirements and
    target packages, from the same index or wheelhouse, with uv in the same place. A layer is used again only if all
    its files also have the same hashes, so that nothing that one project brings reaches another.
    """
    python, origin = _name_python(facts), _name_origin(facts, options, uv)
    try:
        with files.writing(cache() / "layers", "TFCOMPARE_CACHE names another folder"):
            pins = _lock(requirements, facts, origin, uv)
            folder = cache() / "layers" / _hash(origin, map(lockfile.write_pin, pins))
            if not folder.is_dir():
                _install(folder, pins, python, uv)
    except Unresolved as error:
        needed = ", ".join(requirements)
        told = f"it requires {needed}, which is incompatible with this target: {flatten(str(error))}"
        return Layer(refusal=told[:MOST_REASON])
    return Layer(folder)


def find_conflict(requirements: Sequence[str], facts: EnvironmentFacts, options: EngineOptions, uv: Uv) -> str:
    """Return why an environment cannot have what these requirements need, or ''; nothing is installed."""
    try:
        with files.writing(cache() / "layers", "TFCOMPARE_CACHE names another folder"):
            _lock(requirements, facts, _name_origin(facts, options, uv), uv)
    except Unresolved as error:
        return flatten(str(error))[:MOST_REASON]
    return ""


def _lock(
    requirements: Sequence[str], facts: EnvironmentFacts, origin: Sequence[str], uv: Uv
) -> tuple[lockfile.Pin, ...]:
    """Return what an environment lacks of these requirements, resolved only if that was never done before."""
    present = {name: number for name, number in sorted(facts.packages.items()) if _is_pin(name, number)}
    resolved = cache() / "layers" / f"{_hash(origin, map('=='.join, present.items()), sorted(requirements))}.txt"
    if not resolved.is_file():
        _resolve(resolved, requirements, present, _name_python(facts), uv)
    return tuple(lockfile.read_lock(resolved))


def _name_python(facts: EnvironmentFacts) -> str:
    return ".".join(facts.python.split(".")[:2])


def _name_origin(facts: EnvironmentFacts, options: EngineOptions, uv: Uv) -> list[str]:
    return [uv.place, _name_python(facts), *describe_index(options)]


def describe_index(options: EngineOptions) -> list[str]:
    """Return the strings that identify the index or wheelhouse that packages come from; they are part of keys."""
    named = {**pass_variables(), **name_index(options)}
    found = [f"{name}={value}" for name, value in sorted(named.items()) if name.startswith("UV_") and "INDEX" in name]
    found += choose_index(options)
    for folder in filter(None, named.get("UV_FIND_LINKS", "").split(",")):
        found.append(folder)
        with suppress(OSError):
            # The files are part of the key, because a new one may be chosen the next time.
            found += sorted(f"{entry.name} {entry.stat().st_mtime_ns}" for entry in Path(folder).iterdir())
    return found


def _hash(*parts: Iterable[str]) -> str:
    return hashlib.sha256("\n\n".join(map("\n".join, parts)).encode()).hexdigest()[:32]


@contextmanager
def _make_folder(shared: Path) -> Iterator[Path]:
    """Yield a temporary folder next to the layers."""
    shared.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=shared, prefix=".made-"))
    try:
        yield made
    finally:
        files.remove_tree(made)


def _resolve(path: Path, requirements: Sequence[str], present: Mapping[str, str], python: str, uv: Uv) -> None:
    """Write a lock of the packages that these requirements need and the environment lacks."""
    with _make_folder(path.parent) as made:
        wanted = [str(Requirement(text)) for text in requirements]
        known = [f"{name}=={number}" for name, number in present.items()]
        lock = made / LOCK
        lock.write_text(locking.pin_requirements(uv.run, made, python, wanted, known, ("--no-config",)))
        missing = [pin for pin in lockfile.read_lock(lock) if lockfile.normalize(pin.name) not in present]
        files.write_atomically(path, "".join(f"{lockfile.write_pin(pin)}\n" for pin in missing).encode())


def _install(folder: Path, pins: Sequence[lockfile.Pin], python: str, uv: Uv) -> None:
    """Install the pins into a temporary folder, which gets its final name when it is complete."""
    with _make_folder(folder.parent) as made:
        (made / LOCK).write_text("".join(f"{lockfile.write_pin(pin)}\n" for pin in pins))
        (made / "packages").mkdir()
        if pins:
            uv.run(
                (*INSTALL, "--no-config", *target_arguments(python), "--target", "packages", "-r", LOCK),
                made,
                INSTALL_TIMEOUT_S,
            )
        if strange := next(files.strangers(made, skip=("cache",)), None):
            raise Unresolved(f"{strange.name} in one of the packages is neither a file nor a folder")
        complete = made / "complete"
        shutil.copytree(made / "packages", complete, copy_function=_copy_plain)
        shutil.copy(made / LOCK, complete / LOCK)
        try:
            complete.rename(folder)
        except OSError:
            # Another run, or another target of this one, may have made it meanwhile.
            if not folder.is_dir():
                raise


def _copy_plain(source: str, target: str) -> None:
    """Copy a file's content, and keep only the executable bit of its permissions."""
    shutil.copyfile(source, target)
    os.chmod(target, 0o755 if os.stat(source).st_mode & 0o100 else 0o644)


def _is_pin(name: str, number: str) -> bool:
    """Return whether this is a valid package name and version number; an image may state anything."""
    try:
        Number(number)
    except InvalidVersion:
        return False
    return bool(lockfile.PIN.fullmatch(f"{name}=={number}"))
