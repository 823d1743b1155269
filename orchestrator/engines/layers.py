"""Packages that workloads require beyond what a target has: locked against it, in a folder next to its environment.

A layer never changes what is measured: it holds only packages that the target lacks, each of a release that agrees with
all that the target has, and it comes last on the path.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator import contract
from orchestrator.catalog import lockfile
from orchestrator.catalog.lock_on_demand import PLATFORM, RESOLVE_TIMEOUT_S, find_uv
from orchestrator.catalog.user_data import cache
from orchestrator.errors import UsageError
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions

INSTALL_TIMEOUT_S = 1800
LOCK = "lock.txt"
# What uv draws around its reasons.
DRAWN = str.maketrans("", "", "×╰─▶│├")
MOST_REASON = 400


@dataclass(frozen=True)
class Layer:
    """The folder of what a workload requires in a target, or why it cannot be had; neither if nothing is missing."""

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


def make_layer(requirements: Sequence[str], facts: EnvironmentFacts, options: EngineOptions) -> Layer:
    """Return the layer for these requirements in an environment, made unless that was done before."""
    python = ".".join(facts.python.split(".")[:2])
    present = "\n".join(f"{name}=={number}" for name, number in sorted(facts.packages.items()))
    key = hashlib.sha256("\n".join([python, present, "", *sorted(requirements)]).encode()).hexdigest()[:24]
    folder = cache() / "layers" / key
    if not folder.is_dir():
        try:
            _make(folder, requirements, facts.packages, python, options)
        except subprocess.CalledProcessError as error:
            return Layer(refusal=_shorten(error.stderr, requirements))
        except subprocess.TimeoutExpired:
            return Layer(refusal=f"what it requires could not be installed within {INSTALL_TIMEOUT_S // 60} min")
        except OSError as error:
            raise UsageError(
                f"cannot write {folder}: {error.strerror}; TFCOMPARE_CACHE names another folder"
            ) from error
    return Layer(folder)


def _shorten(said: str, requirements: Sequence[str]) -> str:
    reason = " ".join(said.translate(DRAWN).split())
    return f"it requires {', '.join(requirements)}, which does not go with this target: {reason}"[:MOST_REASON]


def _make(
    folder: Path, requirements: Sequence[str], present: Mapping[str, str], python: str, options: EngineOptions
) -> None:
    """Resolve and install into a folder that gets its name when it is complete."""
    uv = find_uv()
    if uv is None:
        raise UsageError("uv, which installs what workloads require, is not on PATH: pip install uv")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        constraints, lock = made / "present.txt", made / LOCK
        constraints.write_text("".join(f"{name}=={number}\n" for name, number in present.items() if _is_number(number)))
        target = ["--python-version", python, "--python-platform", PLATFORM, "--no-config", "--quiet"]
        resolving = [uv, "pip", "compile", "-", *target, "--no-header", "--no-annotate", "--generate-hashes"]
        resolved = _run(
            [*resolving, "--constraints", str(constraints)], options, RESOLVE_TIMEOUT_S, "\n".join(requirements)
        )
        lock.write_text(resolved)
        missing = [pin for pin in lockfile.read(lock) if lockfile.normalize(pin.name) not in present]
        lock.write_text("".join(f"{lockfile.write_pin(pin)}\n" for pin in missing))
        (made / "packages").mkdir()
        if missing:
            how = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(made / "packages")]
            _run([uv, "pip", "install", *target, *how, "-r", str(lock)], options, INSTALL_TIMEOUT_S)
        shutil.copy(lock, made / "packages" / LOCK)
        # Another run may have made it meanwhile.
        if not folder.is_dir():
            (made / "packages").rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_number(text: str) -> bool:
    """Return whether this is a version number: an image may hold packages whose number is none."""
    try:
        Number(text)
    except InvalidVersion:
        return False
    return True


def _run(command: Sequence[str], options: EngineOptions, timeout_s: float, text: str = "") -> str:
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=timeout_s, check=True, env=_environment(options)
    )
    return done.stdout


def _environment(options: EngineOptions) -> dict[str, str]:
    """Return the variables of uv; an address may hold a login, and every user can read a process's arguments."""
    asked: dict[str, str] = {}
    if options.index_url:
        asked["UV_DEFAULT_INDEX"] = options.index_url
    if options.wheelhouse:
        asked["UV_FIND_LINKS"] = str(options.wheelhouse)
        if not options.index_url:
            asked["UV_NO_INDEX"] = "1"
    if options.ca_bundle:
        asked["SSL_CERT_FILE"] = str(options.ca_bundle)
    return {**os.environ, **asked}
