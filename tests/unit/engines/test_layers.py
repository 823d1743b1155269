"""What workloads require beyond a target's packages: resolved by the real uv, from a folder of wheels."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import pytest

from orchestrator import contract
from orchestrator.engines import layers
from orchestrator.engines.layers import Layer, LocalUv, describe_layers
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions
from tests.support.builders import environment_facts
from tests.support.packages import source, wheel


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineOptions:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, number in (("plots", "1.0"), ("plots", "2.0"), ("numbers", "1.0"), ("numbers", "2.0")):
        wheel(wheels, name, number)
    return EngineOptions(wheelhouse=wheels)


def facts(python: str = "3.7.16", **packages: str) -> EnvironmentFacts:
    return environment_facts(version="2.0.0", kind="venv", identity="x", lock="y", python=python, packages=packages)


def make_layer(requirements: Sequence[str], facts: EnvironmentFacts, options: EngineOptions) -> Layer:
    return layers.make_layer(requirements, facts, options, LocalUv(options))


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


def test_a_layer_is_made_once_for_all_environments_that_lack_the_same(
    options: EngineOptions, monkeypatch: pytest.MonkeyPatch
):
    first = make_layer(("plots<2",), facts(numbers="1.0"), options)
    assert make_layer(("plots<2",), facts(numbers="2.0"), options) == first
    assert make_layer(("plots",), facts(numbers="2.0"), options) != first
    monkeypatch.setattr(layers, "find_uv", lambda: pytest.fail("it is there already"))
    assert make_layer(("plots<2",), facts(numbers="1.0"), options) == first


def test_what_contradicts_the_environment_is_a_refusal_with_the_reason(options: EngineOptions):
    layer = make_layer(("numbers>=2",), facts(numbers="1.0"), options)
    assert layer.folder is None
    assert layer.refusal.startswith("it requires numbers>=2, which is incompatible with this target: ")
    assert "numbers" in layer.refusal.partition(": ")[2]
    assert len(layer.refusal) <= layers.MOST_REASON
    assert not list((Path(layers.cache()) / "layers").iterdir())


def test_what_no_index_has_is_a_refusal(options: EngineOptions):
    assert "nothing-like-it" in make_layer(("nothing-like-it",), facts(), options).refusal


def test_a_requirement_that_is_there_already_takes_no_package(options: EngineOptions):
    assert names(make_layer(("numbers",), facts(numbers="1.0"), options)) == []


def test_a_package_that_comes_as_source_is_refused_by_its_name_and_never_run(options: EngineOptions, tmp_path: Path):
    assert options.wheelhouse
    source(options.wheelhouse, "evilpkg", "1.0", tmp_path / "marker")
    for requirement in ("evilpkg", "evilpkg==1.0", "needs-evil"):
        needy = options.wheelhouse / "needs_evil-1.0-py3-none-any.whl"
        if not needy.exists():
            wheel(options.wheelhouse, "needs_evil", needs=("evilpkg",))
        layer = make_layer((requirement,), facts(), options)
        assert "evilpkg" in layer.refusal
    assert not (tmp_path / "marker").exists()


def test_an_address_in_the_metadata_of_a_package_is_not_fetched(options: EngineOptions, tmp_path: Path):
    assert options.wheelhouse
    evil = source(tmp_path, "evilpkg", "1.0", tmp_path / "marker")
    wheel(options.wheelhouse, "needs_evil", needs=(f"evilpkg @ {evil.as_uri()}",))
    assert "evilpkg" in make_layer(("needs-evil",), facts(), options).refusal
    assert not (tmp_path / "marker").exists()


def test_a_python_that_lies_in_the_working_directory_is_not_started(
    options: EngineOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    marker, program = tmp_path / "marker", tmp_path / "clone" / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho ran >>{marker}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "clone" / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    (tmp_path / "clone" / "uv.toml").write_text('find-links = ["/nowhere"]\n')
    monkeypatch.chdir(tmp_path / "clone")
    assert names(make_layer(("plots",), facts(), options)) == ["plots"]
    assert not marker.exists()


def test_packages_of_one_wheelhouse_never_reach_a_project_that_has_another(options: EngineOptions, tmp_path: Path):
    others = tmp_path / "others"
    others.mkdir()
    wheel(others, "plots", "2.0", code="EVIL = True\n")
    evil = make_layer(("plots",), facts(), EngineOptions(wheelhouse=others))
    clean = make_layer(("plots",), facts(), options)
    assert evil.folder
    assert clean.folder
    assert "EVIL" in (evil.folder / "plots.py").read_text()
    assert "EVIL" not in (clean.folder / "plots.py").read_text()


def test_the_same_name_and_number_with_another_content_is_another_layer(options: EngineOptions):
    assert options.wheelhouse
    first = make_layer(("plots",), facts(), options)
    wheel(options.wheelhouse, "plots", "2.0", code="CHANGED = True\n")
    second = make_layer(("plots",), facts(), options)
    assert first.folder != second.folder
    assert second.folder
    assert "CHANGED" in (second.folder / "plots.py").read_text()


def test_a_lock_that_was_kept_installs_the_same_packages_again(options: EngineOptions):
    layer = make_layer(("plots<2",), facts(), options)
    assert layer.folder
    shutil.rmtree(layer.folder)
    assert make_layer(("plots<2",), facts(), options) == layer
    assert names(layer) == ["plots"]


def test_two_targets_that_need_the_same_layer_at_once_share_it(options: EngineOptions):
    ready = Barrier(2)

    @dataclass(frozen=True)
    class Waiting(LocalUv):
        def run(self, arguments: Sequence[str], folder: Path, timeout_s: float) -> str:
            printed = super().run(arguments, folder, timeout_s)
            ready.wait(60)
            return printed

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(
            lambda each: layers.make_layer(("plots",), facts(), options, Waiting(options)), ("one", "other")
        )
    assert one == other
    assert names(one) == ["plots"]


def test_uv_has_what_the_index_needs_and_no_secret_of_the_caller(
    options: EngineOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program = tmp_path / "uv"
    program.write_text(f'#!/bin/sh\nenv >{tmp_path}/variables\necho "$@" >{tmp_path}/arguments\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(layers, "find_uv", lambda: str(program))
    planted = ("MY_SECRET", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD", "PYTHONPATH")
    planted += ("UV_BUILD_CONSTRAINT", "UV_CONFIG_FILE", "PIP_TARGET", "TFCOMPARE_INDEX_URL")
    for name in planted:
        monkeypatch.setenv(name, f"planted-{name}" if name != "LD_PRELOAD" else "")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:1")
    make_layer(("plots",), facts(), EngineOptions(index_url="http://somebody:password@index.invalid/simple"))
    variables = dict(line.partition("=")[::2] for line in (tmp_path / "variables").read_text().splitlines())
    assert not variables.keys() & {*planted}
    assert variables["HTTPS_PROXY"] == "http://proxy.invalid:1"
    assert variables["UV_DEFAULT_INDEX"] == "http://somebody:password@index.invalid/simple"
    assert "password" not in (tmp_path / "arguments").read_text()


def test_a_worker_is_told_where_layers_are_as_it_sees_them(tmp_path: Path):
    made = {"one": Layer(tmp_path), "two": Layer(refusal="no"), "three": Layer()}
    told = describe_layers(made, lambda folder: f"/inside/{folder.name}")
    assert json.loads(told[contract.LAYERS]) == {
        "one": {"folder": f"/inside/{tmp_path.name}"},
        "two": {"refused": "no"},
    }
    assert describe_layers({}) == {}
