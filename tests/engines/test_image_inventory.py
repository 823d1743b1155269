"""What is asked inside an environment answers under every Python that versions run on, and in a real environment."""

import json
import subprocess
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.bundled import WORKLOADS
from orchestrator.catalog import lockfile
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.images.verify import KERASES
from orchestrator.options import EngineOptions
from tests.conftest import ROOT, require_python

PYTHONS = sorted(catalog.builtin_catalogue().python, key=lambda number: int(number.split(".")[1]))


@pytest.mark.parametrize("number", PYTHONS)
def test_its_own_tests_pass_under_every_python_of_the_table(number: str) -> None:
    found = require_python(number)
    argv = [found.path, "-W", "error", "-m", "unittest", "tests.workloads.test_image_inventory"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\nOK" in done.stderr


@pytest.mark.parametrize("number", ["1.14.0", "2.13.0"])
def test_a_real_environment_is_as_its_lock_says(number: str, tmp_path: Path) -> None:
    [version] = catalog.resolve_versions([number], fewest=1)
    facts = VenvEngine(EngineOptions()).prepare(version, BuildLog(tmp_path / "log")).facts
    [flavour] = [one for one in version.on("cpu") if facts.python.startswith(one.python.number + ".")]
    python = Path(facts.details["path"]) / "bin" / "python"
    done = subprocess.run([python, WORKLOADS / "image_inventory.py"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    locked = lockfile.list_packages(flavour.pip_lock, flavour.lock)
    assert found["distributions"] == locked
    assert found["unrecorded"] == []
    [files] = found["files"]
    assert [files[what] for what in ("missing", "changed", "added")] == [{"count": 0, "first": []}] * 3
    assert files["checked"] > 5000
    assert found["imported"]["tensorflow"] == number
    assert found["imported"]["numpy"] == locked["numpy"]
    assert found["imported"]["cuda_build"] is False
    assert version.keras in [found["distributions"].get(name) for name in KERASES]
