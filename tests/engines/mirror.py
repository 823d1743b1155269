"""Other machines for tests: a mirror of Python builds, a machine that has little, and one without a network."""

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from orchestrator.engines.venv.interpreters import Interpreter
from tests.conftest import require_python

NUMBER = "3.7"
RELEASE = "20990101"
PREFIX = "https://github.com/astral-sh/python-build-standalone/releases/download"
# What an environment with pip does not need.
LEFT_OUT = ("/test", "/tests", "/idlelib", "/tkinter", "/lib2to3", "/site-packages", "/__pycache__")


def local_python() -> Interpreter:
    return require_python(NUMBER)


def make_mirror(folder: Path) -> dict[str, str]:
    """Write archive and list; return the variables that make uv use them."""
    python = local_python()
    archive = folder / "mirror" / RELEASE / f"cpython-{python.version}-install_only.tar.gz"
    archive.parent.mkdir(parents=True)
    _pack(Path(python.prefix), archive)
    entry = {
        "name": "cpython", "arch": {"family": "x86_64", "variant": None}, "os": "linux", "libc": "gnu",
        **dict(zip(("major", "minor", "patch"), map(int, python.version.split(".")), strict=True)),
        "prerelease": "", "variant": None, "build": RELEASE, "url": f"{PREFIX}/{RELEASE}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }  # fmt: skip
    downloads = folder / "downloads.json"
    downloads.write_text(json.dumps({f"cpython-{python.version}-linux-x86_64-gnu": entry}))
    return {
        "UV_PYTHON_INSTALL_MIRROR": (folder / "mirror").as_uri(),
        "UV_PYTHON_DOWNLOADS_JSON_URL": downloads.as_uri(),
    }


def _pack(prefix: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add((prefix / "bin" / f"python{NUMBER}").resolve(), f"python/bin/python{NUMBER}")
        packed.add(prefix / "lib" / f"python{NUMBER}", f"python/lib/python{NUMBER}", filter=_wanted)
        for library in prefix.glob(f"lib/libpython{NUMBER}*.so*"):
            packed.add(library, f"python/lib/{library.name}")


def _wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = member.name.endswith((*LEFT_OUT, ".a")) or f"/config-{NUMBER}" in member.name
    return None if left_out else member


def measure_without_network(tfcompare: Path | str, out: Path, env: dict[str, str], *flags: str) -> set[str]:
    """Run in a namespace without interfaces, and return how the arms ended."""
    words = [*leave_network(), tfcompare, "run", *flags, "--engine", "venv", "--rounds", "2", "--format", "json"]
    done = subprocess.run([*words, "--output", out], env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return {arm["outcome"] for arm in json.loads(done.stdout)["arms"]}


def leave_network() -> list[str]:
    """Return the beginning of a command that runs in a namespace without interfaces."""
    apart = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace: this user can make none")
    return apart


def bare_machine(folder: Path) -> dict[str, str]:
    """Return the variables of a machine with Python 3.11 and nothing else, with empty folders for the user."""
    found = require_python("3.11")
    home, bin = folder / "home", folder / "bin"
    for path in (home, bin):
        path.mkdir(parents=True)
    for name in ("python3.11", "python3"):
        # Not what PATH names: that may be a script which needs more of the machine.
        (bin / name).symlink_to(Path(found.prefix) / "bin" / "python3.11")
    return {
        "PATH": str(bin),
        "HOME": str(home),
        "PYENV_ROOT": str(folder / "pyenv"),
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "CACHE", "CONFIG", "STATE", "BIN")},
        "TFCOMPARE_CACHE": str(folder / "cache"),
        "DOCKER_HOST": "unix:///nowhere/docker.sock",
        "UV_HTTP_RETRIES": "0",
    }


# Variables of the user that would lead around the bare machine or the mirror.
UNSET = tuple(name for name in os.environ if name.startswith("UV_"))
