"""Any engine of the registry is chosen by its name, its isolation and whether it answers; none is taken for another."""

from contextlib import closing
from dataclasses import replace

import pytest

from orchestrator.engines import ENGINES, EngineInfo
from orchestrator.engines.choose import choose_engine, find_candidates
from orchestrator.engines.venv import engine as venv
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.machine.gpu import Gpu
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions
from tests.support.engines import offer_engines
from tests.support.heard import Heard

SMOKE = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",))


class Answering:
    def check(self) -> str:
        return "a third engine"

    def sweep(self) -> list[str]:
        return []


def test_an_engine_that_is_registered_is_chosen_by_its_name(monkeypatch: pytest.MonkeyPatch):
    made = Answering()
    monkeypatch.setitem(ENGINES, "third", EngineInfo(title="thirds", make=lambda options: made, isolation="process"))
    said: list[str] = []
    assert choose_engine("third", "fork", EngineOptions(), Heard(said)) == ("third", made)
    assert said == ["engine: a third engine"]
    assert find_candidates("auto", "fork", EngineOptions()) == ["docker", "venv", "third"]
    assert find_candidates("auto", "process", EngineOptions()) == ["venv", "third"]


def test_an_isolation_that_an_engine_does_not_offer_is_refused():
    with pytest.raises(UsageError, match="--isolation container goes with --engine docker"):
        find_candidates("venv", "container", EngineOptions())


def test_an_unknown_engine_is_refused_with_the_nearest():
    with pytest.raises(
        UsageError, match=r"unknown engine 'dokcer' .did you mean docker.*; use one of auto, docker, venv"
    ):
        find_candidates("dokcer", "fork", EngineOptions())


def chosen(options: RunOptions) -> tuple[str, str]:
    said: list[str] = []
    name, engine = choose_engine(options.engine, options.isolation, options.environments, Heard(said))
    assert engine.name == name
    return name, "\n".join(said)


def test_auto_takes_docker_where_it_answers_and_says_how_not_to(monkeypatch: pytest.MonkeyPatch):
    offer_engines(monkeypatch, docker=True, venv=True)
    name, said = chosen(SMOKE)
    assert name == "docker"
    assert "--engine venv" in said


def test_auto_takes_environments_where_docker_does_not_answer_and_says_why(monkeypatch: pytest.MonkeyPatch):
    offer_engines(monkeypatch, docker=False, venv=True)
    assert chosen(SMOKE) == ("venv", "engine: venv (docker does not answer)")


def test_virtual_environments_have_a_gpu_only_where_the_machine_shows_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        venv, "find_gpus", lambda: (Gpu(0, "GPU-1", "NVIDIA L4", "8.9", "550.54", 24_000, 72, True, False),)
    )
    with closing(VenvEngine(EngineOptions(gpu=True))) as engine:
        assert engine.check().startswith("virtual environments")
    monkeypatch.setattr(venv, "find_gpus", lambda: ())
    with closing(VenvEngine(EngineOptions(gpu=True))) as engine, pytest.raises(EngineUnavailable, match="shows a GPU"):
        engine.check()


def test_an_engine_that_was_named_is_taken_or_nothing(monkeypatch: pytest.MonkeyPatch):
    offer_engines(monkeypatch, docker=False, venv=True)
    assert chosen(replace(SMOKE, engine="venv"))[0] == "venv"
    with pytest.raises(EngineUnavailable):
        chosen(replace(SMOKE, engine="docker"))
    with pytest.raises(UsageError, match="unknown engine 'podman'; use one of auto, docker, venv"):
        chosen(replace(SMOKE, engine="podman"))
