"""On another architecture, both engines say before any work which versions have no wheels, and take the others."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import user_data
from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import engine, image
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EnvironmentFailed
from orchestrator.machine import supported
from orchestrator.options import EngineOptions
from tests.unit.engines.docker.scenes import Client

ENGINES = (DockerEngine, VenvEngine)
FROM_ON = "TensorFlow has wheels for Linux on aarch64 from 2.10 on"


@pytest.fixture(autouse=True)
def on_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(engine, "connect_engine", lambda timeout_s=60: Client())
    monkeypatch.setattr(image, "existing", lambda client, recipe: None)
    monkeypatch.setattr(image, "find_missing", lambda client, reference, what="base": None)
    become(monkeypatch, "aarch64")
    user_data.write_user_file(
        user_data.locks() / "2.13.0-cpu-py3.11-aarch64.txt", f"numpy==1.0 --hash=sha256:{'0' * 64}\n"
    )
    catalog.reread()
    yield
    monkeypatch.undo()
    catalog.reread()


def become(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr(supported.platform, "machine", lambda: machine)
    catalog.reread()


def find(number: str) -> Version:
    [version] = catalog.resolve_versions((number,), fewest=1)
    return version


@pytest.mark.parametrize("kind", ENGINES)
def test_a_version_without_wheels_is_impossible_there_and_not_here(kind: type, monkeypatch, tmp_path: Path):
    with closing(kind(EngineOptions())) as made:
        found = made.outlook(find("2.9"))
        assert (found.state, found.text, found.advice) == ("impossible", FROM_ON, "name newer ones, or use x86-64")
        with pytest.raises(EnvironmentFailed, match=f"2.9.3: {FROM_ON}; name newer ones"):
            made.prepare(find("2.9"), BuildLog(tmp_path / "log"))
        assert made.outlook(find("2.13")).state == "to build"
        # Its lock could not be made.
        assert made.outlook(find("2.14")).text == "it could not be locked for Linux on aarch64"
        become(monkeypatch, "x86_64")
        assert made.outlook(find("2.9")).state == made.outlook(find("2.14")).state == "to build"


@pytest.mark.parametrize("kind", ENGINES)
def test_a_gpu_is_impossible_there(kind: type):
    with closing(kind(EngineOptions(gpu=True))) as made:
        assert made.outlook(find("2.16")).text == "TensorFlow has no wheels with CUDA for Linux on aarch64"


def test_an_image_there_is_made_of_the_same_base_and_another_lock(monkeypatch):
    client = Client()
    monkeypatch.setattr(image, "_base_id", lambda client, base: "")
    there = image.recipe(client, find("2.13"), find("2.13").on("cpu")[0], None)
    become(monkeypatch, "x86_64")
    here = image.recipe(client, find("2.13"), find("2.13").on("cpu")[0], None)
    assert there.base == here.base
    assert there.spec != here.spec
