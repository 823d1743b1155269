"""Where the peers are installed.

asv has a separate virtual environment. Each version has one that holds the peers' packages and sees the version's
environment, into which nothing is installed.

`inside.txt` locks what runs inside the versions, `host.txt` locks asv; both are written by `uv pip compile --universal
--generate-hashes`. pyperf 2.7.0 is the last that Python 3.7 can import: 2.8.0 allows it, but needs importlib.metadata.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import arena
from orchestrator.engines.environment import worker_variables
from orchestrator.engines.venv.engine import environments_folder

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
KEPT = environments_folder().parent / "bench"
TAIL = 2000


# By name, a workload file and its parameters: what suite/cases.py times.
Suite = Mapping[str, tuple[str, dict[str, str]]]


@dataclass(frozen=True)
class Places:
    """asv's Python and, by version, the Python that sees its TensorFlow and the peers' packages."""

    asv: Path
    inside: dict[str, Path]


def prepare(versions: Sequence[str], scratch: Path) -> Places:
    return Places(_host(), {version: _inside(version, scratch) for version in versions})


def _host() -> Path:
    lock = HERE / "host.txt"
    folder = _folder("asv", lock)
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        call([sys.executable, "-m", "venv", folder])
        _install(python, python, lock)
        (folder / "ready").touch()
    return python


def _inside(version: str, scratch: Path) -> Path:
    lock = HERE / "inside.txt"
    facts = arena.environment(version, scratch).facts
    folder = _folder(facts.identity, lock)
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        outer = Path(facts.details["path"])
        call([outer / "bin" / "python", "-m", "venv", "--without-pip", folder])
        _install(outer / "bin" / "python", python, lock)
        seen, own = (next(path.glob("lib/python*/site-packages")) for path in (outer, folder))
        (own / "version.pth").write_text(f"import site; site.addsitedir({str(seen)!r})\n")
        (folder / "ready").touch()
    return python


def _folder(name: str, lock: Path) -> Path:
    key = hashlib.sha256(f"{lock.read_text()} {sys.version}".encode()).hexdigest()
    return KEPT / f"{name}-{key[:16]}"


def _install(pip: Path, python: Path, lock: Path) -> None:
    command = [pip, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    call([*command, "--only-binary", ":all:", "--require-hashes", "-r", lock])


def release(python: Path, package: str) -> str:
    """Return the release of a package in its environment; Python 3.7 could not report it itself."""
    (found,) = python.parent.parent.glob(f"lib/python*/site-packages/{package}-*.dist-info")
    return found.stem.partition("-")[2]


def surroundings(home: Path, suite: Suite | None = None, **more: str) -> dict[str, str]:
    """Return the variables of tfcompare's own workers, so that all tools measure under the same ones."""
    own = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2", "HOME": str(home), "PATH": os.environ["PATH"]}
    return {**worker_variables(), **own, "CASES": json.dumps(suite or {}), "REPOSITORY": str(REPOSITORY), **more}


def call(argv: Sequence[object], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command and return its output; a command that fails is an error."""
    done = attempt(argv, env, cwd)
    if done.returncode:
        raise SystemExit(f"{' '.join(done.args)}\nended with {done.returncode}:\n{done.stdout[-TAIL:]}")
    return done.stdout


def attempt(
    argv: Sequence[object], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = list(map(str, argv))
    return subprocess.run(command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
