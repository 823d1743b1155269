"""Environments whose TensorFlow is the stub, in a separate cache: a real command's workers start at once.

Python, numpy and pyarrow are those of the real environments.
"""

import json
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.engine import MARKER, VenvEngine, environment_path
from orchestrator.options import EngineOptions
from tests.support import stub


def build(cache: Path, numbers: Sequence[str]) -> dict[str, str]:
    """Build one for each version, and return the variable that makes tfcompare use them."""
    engine = VenvEngine(EngineOptions())
    for version in catalog.resolve(numbers, fewest=1):
        real = engine.prepare(version, BuildLog(cache.parent / f"{version.number}.log", lambda line: None))
        _make(cache, real.path.name, real.path, Path(real.facts.details["interpreter"]), version.number)
    engine.close()
    return {"TFCOMPARE_CACHE": str(cache)}


def build_nightly(cache: Path, version: Version, like: str, described: str) -> None:
    """Build one for a locked nightly with the packages of a release; `described` is what it says of its commit."""
    [flavour] = version.flavours
    interpreter = interpreters.find(flavour.python.number)
    assert interpreter is not None
    with closing(VenvEngine(EngineOptions())) as engine:
        [release] = catalog.resolve((like,), fewest=1)
        real = engine.prepare(release, BuildLog(cache.parent / f"{version.number}.log", lambda line: None))
    own = _make(cache, environment_path(flavour, interpreter).name, real.path, interpreter.path, version.number)
    with (own / "tensorflow" / "__init__.py").open("a") as module:
        module.write(f"\nversion = Namespace(GIT_VERSION={described!r})\n")


def _make(cache: Path, name: str, like: Path, interpreter: Path, number: str) -> Path:
    path = cache / "tfcompare" / "environments" / name
    subprocess.run([interpreter, "-I", "-m", "venv", "--without-pip", path], check=True)
    [own], [seen] = (list(place.glob("lib/python*/site-packages")) for place in (path, like))
    stub.write(own, number)
    (own / "real.pth").write_text(f"{seen}\n")
    (path / MARKER).write_text(json.dumps({**json.loads((like / MARKER).read_text()), "version": number}))
    return own
