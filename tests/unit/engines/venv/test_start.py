"""A worker that is not started names the cause: the environment, or what the host lacks."""

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest

from orchestrator.engines import WorkerPaths
from orchestrator.engines.venv.engine import VenvEnvironment
from orchestrator.engines.worker import channel
from orchestrator.errors import EnvironmentFailed
from orchestrator.options import EngineOptions
from tests.support.builders import environment_facts


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VenvEnvironment:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    path = tmp_path / "made"
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    facts = environment_facts(version="2.0.0", kind="venv")
    return VenvEnvironment(path, facts, EngineOptions(), home=path)


def explain(environment: VenvEnvironment, tmp_path: Path, log: str = "worker.log") -> str:
    paths = WorkerPaths(run="x", results=tmp_path, log=tmp_path / log, own_workloads=None)
    with pytest.raises(EnvironmentFailed) as failed:
        environment.start(paths, tmp_path / "stream.arrow")
    return str(failed.value)


def test_an_environment_that_is_broken_or_gone_is_made_again(environment: VenvEnvironment, tmp_path: Path):
    python = environment.path / "bin" / "python"
    python.unlink()
    assert explain(environment, tmp_path) == (
        f"2.0.0: {python} does not start (No such file or directory); remove {environment.path} and run again"
    )
    python.write_text("no program")
    python.chmod(0o755)
    assert "does not start (Exec format error)" in explain(environment, tmp_path)
    shutil.rmtree(environment.path)
    assert explain(environment, tmp_path) == (f"2.0.0: {environment.path} was removed; run again to install it again")
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("gone", ["scratch", "logs"])
def test_a_folder_of_the_host_that_is_gone_is_no_fault_of_the_environment(
    environment: VenvEnvironment, tmp_path: Path, gone: str
):
    if gone == "scratch":
        (tmp_path / gone).rmdir()
    words = explain(environment, tmp_path, "logs/worker.log")
    assert words.startswith(f"2.0.0: cannot write {tmp_path / gone}/")
    assert f": {tmp_path / gone} was removed; make it again, then " in words
    assert str(environment.path) not in words


def test_a_host_that_can_start_no_process_is_no_fault_of_the_environment(
    environment: VenvEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*arguments: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(channel, "_start", refuse)
    assert explain(environment, tmp_path) == (
        "2.0.0: no process could be started for it: Resource temporarily unavailable"
    )
