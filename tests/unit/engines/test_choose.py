"""Any engine of the registry is chosen by its name, its isolation and whether it answers; none is taken for another."""

import pytest

from orchestrator.engines import ENGINES, EngineInfo, EngineOptions
from orchestrator.engines.choose import choose_engine, find_candidates
from orchestrator.errors import UsageError


class Answering:
    def check(self) -> str:
        return "a third engine"


def test_an_engine_that_is_registered_is_chosen_by_its_name(monkeypatch: pytest.MonkeyPatch):
    made = Answering()
    monkeypatch.setitem(ENGINES, "third", EngineInfo(title="thirds", make=lambda options: made, isolation="process"))
    said: list[str] = []
    assert choose_engine("third", "fork", EngineOptions(), said.append) == ("third", made)
    assert said == ["engine: a third engine"]
    assert find_candidates("auto", "fork", EngineOptions()) == ["docker", "venv", "third"]
    assert find_candidates("auto", "process", EngineOptions()) == ["venv", "third"]


def test_a_gpu_leaves_only_engines_that_have_one():
    assert find_candidates("auto", "fork", EngineOptions(gpu=True)) == ["docker"]


def test_an_isolation_that_an_engine_does_not_offer_is_refused():
    with pytest.raises(UsageError, match="--isolation container goes with --engine docker"):
        find_candidates("venv", "container", EngineOptions())


def test_an_unknown_engine_is_refused_with_the_nearest():
    with pytest.raises(
        UsageError, match=r"unknown engine 'dokcer' .did you mean docker.*; there are auto, docker, venv"
    ):
        find_candidates("dokcer", "fork", EngineOptions())
