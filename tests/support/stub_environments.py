"""Environments whose TensorFlow is the stub, in a separate cache: a real command's workers start at once.

Python, numpy and pyarrow are those of the real environments.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from orchestrator import catalog
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv.engine import MARKER, VenvEngine
from orchestrator.options import EngineOptions
from tests.support import stub


def build(cache: Path, numbers: Sequence[str]) -> dict[str, str]:
    """Build one for each version, and return the variable that makes tfcompare use them."""
    engine = VenvEngine(EngineOptions())
    for version in catalog.resolve(numbers, fewest=1):
        real = engine.prepare(version, BuildLog(cache.parent / f"{version.number}.log", lambda line: None))
        path = cache / "tfcompare" / "environments" / real.path.name
        subprocess.run([real.facts.details["interpreter"], "-I", "-m", "venv", "--without-pip", path], check=True)
        [own], [seen] = (list(place.glob("lib/python*/site-packages")) for place in (path, real.path))
        stub.write(own, version.number)
        (own / "real.pth").write_text(f"{seen}\n")
        (path / MARKER).write_text(json.dumps(json.loads((real.path / MARKER).read_text())))
    engine.close()
    return {"TFCOMPARE_CACHE": str(cache)}
