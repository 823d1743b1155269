"""What workloads require beyond a target's packages: resolved by the real uv, from a folder of wheels."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import contract
from orchestrator.engines import layers
from orchestrator.engines.layers import Layer, describe_layers, make_layer
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions
from tests.support.packages import wheel


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineOptions:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, number in (("plots", "1.0"), ("plots", "2.0"), ("numbers", "1.0"), ("numbers", "2.0")):
        wheel(wheels, name, number)
    return EngineOptions(wheelhouse=wheels)


def facts(python: str = "3.7.16", **packages: str) -> EnvironmentFacts:
    return EnvironmentFacts(version="2.0.0", kind="venv", identity="x", lock="y", python=python, packages=packages)


def names(layer: Layer) -> list[str]:
    assert layer.folder, layer.refusal
    return sorted(path.stem for path in layer.folder.glob("*.py"))


def test_a_layer_has_what_is_missing_and_nothing_else(options: EngineOptions):
    layer = make_layer(("plots", "numbers"), facts(numbers="1.0"), options)
    assert names(layer) == ["plots"]
    assert layer.folder
    code = "import plots; print(plots.NUMBER)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(layer.folder)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2.0\n"
    assert "--hash=sha256:" in (layer.folder / layers.LOCK).read_text()


def test_a_layer_is_made_once_for_each_environment(options: EngineOptions, monkeypatch: pytest.MonkeyPatch):
    first = make_layer(("plots<2",), facts(numbers="1.0"), options)
    other = make_layer(("plots<2",), facts(numbers="2.0"), options)
    monkeypatch.setattr(layers, "find_uv", lambda: pytest.fail("it is there already"))
    assert make_layer(("plots<2",), facts(numbers="1.0"), options) == first != other


def test_what_contradicts_the_environment_is_a_refusal_with_the_reason(options: EngineOptions):
    layer = make_layer(("numbers>=2",), facts(numbers="1.0"), options)
    assert layer.folder is None
    assert layer.refusal.startswith("it requires numbers>=2, which does not go with this target: ")
    assert "numbers" in layer.refusal.partition(": ")[2]
    assert len(layer.refusal) <= layers.MOST_REASON
    assert not list((Path(layers.cache()) / "layers").glob("*/packages"))


def test_what_no_index_has_is_a_refusal(options: EngineOptions):
    assert "nothing-like-it" in make_layer(("nothing-like-it",), facts(), options).refusal


def test_a_requirement_that_is_there_already_takes_no_package(options: EngineOptions):
    assert names(make_layer(("numbers",), facts(numbers="1.0"), options)) == []


def test_a_worker_is_told_where_layers_are_as_it_sees_them(tmp_path: Path):
    made = {"one": Layer(tmp_path), "two": Layer(refusal="no"), "three": Layer()}
    told = describe_layers(made, lambda folder: f"/inside/{folder.name}")
    assert json.loads(told[contract.LAYERS]) == {
        "one": {"folder": f"/inside/{tmp_path.name}"},
        "two": {"refused": "no"},
    }
    assert describe_layers({}) == {}
