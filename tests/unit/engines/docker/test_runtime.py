"""`--runtime` chooses what runs containers: it is one that the engine has, and goes with Docker alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog.gpu_support import GpuSupport
from orchestrator.cli import parse
from orchestrator.engines import ENGINES
from orchestrator.engines.choose import find_candidates
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.measure import resume
from orchestrator.options import EngineOptions
from tests.support.builders import plan
from tests.support.commands import called
from tests.unit.engines.docker.scenes import Client, check, make

pytestmark = pytest.mark.usefixtures("outside")


def with_runtimes() -> Client:
    client = Client()
    client.info()["Runtimes"] = {"runc": {}, "runsc": {}}
    return client


def test_a_runtime_that_the_engine_has_runs_the_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    client = with_runtimes()
    assert check(client, monkeypatch, runtime="runsc") == "Docker 28.0 on Debian"
    assert make(client, tmp_path, runtime="runsc")["host_config"]["runtime"] == "runsc"
    assert "runtime" not in make(client, tmp_path)["host_config"]


def test_a_runtime_that_it_does_not_have_is_refused_with_those_that_it_has(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(
        EngineUnavailable, match=r"--runtime kata: this Docker engine has none .*it has runc, runsc; reg"
    ):
        check(with_runtimes(), monkeypatch, runtime="kata")


def test_with_a_runtime_only_docker_is_taken():
    asked = EngineOptions(runtime="runsc")
    assert find_candidates("auto", "fork", EngineOptions()) == ["docker", "venv"]
    assert find_candidates("auto", "fork", asked) == find_candidates("docker", "container", asked) == ["docker"]
    for wanted, isolation in (("venv", "fork"), ("auto", "process"), ("venv", "process")):
        with pytest.raises(UsageError, match="--runtime chooses what runs the containers: use it with --engine docker"):
            find_candidates(wanted, isolation, asked)


def test_a_run_continues_with_the_runtime_of_its_plan(monkeypatch: pytest.MonkeyPatch):
    made: list[EngineOptions] = []
    monkeypatch.setitem(ENGINES, "docker", replace(ENGINES["docker"], make=made.append))
    for runtime in ("runsc", ""):
        resume._make_engine(EngineOptions(), plan(engine="docker", runtime=runtime), GpuSupport())
    assert [options.runtime for options in made] == ["runsc", ""]


BAD = {
    "no name": (("--runtime", "-x"), "expected a runtime of the engine"),
    "a command": (("--runtime", "runc; rm"), "expected a runtime of the engine"),
    "a GPU by a runtime": (("--runtime", "runsc", "--gpu"), "both choose it: add --gpu-request device, or cdi"),
    "environments": (("--runtime", "runsc", "--engine", "venv"), "use it with --engine docker"),
    "a run that continues": (("--runtime", "runsc", "--resume", "runs/x"), "leave --runtime out"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD)
def test_what_is_no_runtime_ends_before_any_work(monkeypatch, capsys, tmp_path: Path, words, message: str):
    monkeypatch.chdir(tmp_path)
    versions = () if "--resume" in words else ("2.13", "2.14", "-c", "power", "--dry-run")
    assert called(monkeypatch, "run", *versions, *words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["runsc", "io.containerd.runsc.v1", "nvidia", "kata-qemu"])
def test_names_of_runtimes(name: str):
    assert parse.runtime(name) == name
