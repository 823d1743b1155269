"""Environments whose TensorFlow is the stub, in a separate cache: a real command's workers start at once.

Python, numpy and pyarrow are those of the real environments.
"""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.engine import MARKER, VenvEngine, environment_path
from orchestrator.options import EngineOptions
from tests.support import stub

# The release whose packages all stubs with that Python have: to install those of each version takes half a minute.
LIKE = {"3.7": "2.0", "3.11": "2.13"}


def build(cache: Path, numbers: Sequence[str]) -> dict[str, str]:
    """Build one for each version, and return the variable that makes tfcompare use them."""
    for version in catalog.resolve_versions(numbers, fewest=1):
        _build(cache, version, LIKE)
    return {"TFCOMPARE_CACHE": str(cache)}


def build_here(cache: Path, numbers: Sequence[str] = ("2.20", "2.21")) -> tuple[dict[str, str], tuple[str, ...]]:
    """Build some whose Python, numpy and pyarrow are those of the tests, without any network.

    Return the variable that makes tfcompare use them, and the targets that they are for.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    targets = []
    for version in catalog.resolve_versions(numbers, fewest=1):
        interpreter = interpreters.find_interpreter(python)
        for flavour in version.on("cpu"):
            if flavour.python.number == python and interpreter:
                path = environment_path(flavour, interpreter)
                marker = {"version": version.number, "lock": flavour.lock.name, "build": interpreter.build}
                own = _make_own(cache, path.name, interpreter.path, version.number, marker)
                (own / "real.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
                targets.append(f"{version.number} py={python}")
    return {"TFCOMPARE_CACHE": str(cache)}, tuple(targets)


def build_nightly(cache: Path, version: Version, like: str, described: str) -> None:
    """Build one for a locked nightly with the packages of a release; `described` is what it says of its commit."""
    own = _build(cache, version, {flavour.python.number: like for flavour in version.flavours})
    with (own / "tensorflow" / "__init__.py").open("a") as module:
        module.write(f"\nversion = Namespace(GIT_VERSION={described!r})\n")


def _build(cache: Path, version: Version, like: Mapping[str, str]) -> Path:
    """Return the folder of its packages."""
    pythons = ((flavour, interpreters.find_interpreter(flavour.python.number)) for flavour in version.on("cpu"))
    flavour, interpreter = next((flavour, found) for flavour, found in pythons if found)
    [release] = catalog.resolve_versions((like[flavour.python.number],), fewest=1)
    with closing(VenvEngine(EngineOptions())) as engine:
        real = engine.prepare(release, BuildLog(cache.parent / f"{version.number}.log"))
    name = environment_path(flavour, interpreter).name
    return _make(cache, name, real.path, interpreter.path, version.number)


def _make(cache: Path, name: str, like: Path, interpreter: Path, number: str) -> Path:
    marker = {**json.loads((like / MARKER).read_text()), "version": number}
    own = _make_own(cache, name, interpreter, number, marker)
    [seen] = like.glob("lib/python*/site-packages")
    (own / "real.pth").write_text(f"{seen}\n")
    return own


def _make_own(cache: Path, name: str, interpreter: Path, number: str, marker: dict[str, str]) -> Path:
    path = cache / "tfcompare" / "environments" / name
    subprocess.run([interpreter, "-I", "-m", "venv", "--without-pip", path], check=True)
    [own] = path.glob("lib/python*/site-packages")
    stub.write(own, number)
    (path / MARKER).write_text(json.dumps(marker))
    return own
