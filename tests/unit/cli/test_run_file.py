"""`run FILE` sees whether a file is a workload or a program; without targets, the baseline is the user's TensorFlow."""

import json
import os
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import active, trust
from orchestrator.cli import settings
from tests.support.commands import called

WORKLOAD = "PARAMS = {'size': ('1', '2')}\ndef build(tf, params):\n    return len\n"
PROGRAMS = {
    "plain": "import tensorflow\n",
    # A program may have a function of this name.
    "a function without parameters": "def build():\n    return 1\n",
    "a function of three": "def build(a, b, c):\n    return 1\n",
    "a method": "class Model:\n    def build(self, shape):\n        pass\n",
    "a nested function": "def main():\n    def build(tf, params):\n        return len\n",
    "imported": "from models import build\n",
}


class Caller:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = called(self.monkeypatch, "run", "--dry-run", "--format", "json", "--engine", "venv", *words)
        streams = self.capsys.readouterr()
        return code, streams.out, streams.err

    def plan(self, *words: str) -> tuple[list[str], list[str], str]:
        code, out, err = self(*words)
        assert code == 0, err
        found = json.loads(out)
        return found["cases"], [each["target"] for each in found["targets"]], err


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Caller:
    for name in (settings.VARIABLE, trust.VARIABLE, *active.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    Path("mine/training.py").write_text(WORKLOAD)
    return Caller(monkeypatch, capsys)


@pytest.mark.parametrize("words", [("2.13", "2.14", "mine/training.py"), ("mine/training.py", "2.13", "2.14")])
def test_the_file_of_a_workload_is_measured_alone(call: Caller, words: tuple[str, ...]):
    Path("mine/other.py").write_text(WORKLOAD)
    cases, versions, err = call.plan(*words)
    assert (cases, versions) == (["training[size=1]", "training[size=2]"], ["2.13.0", "2.14.1"])
    assert "mine/training.py is a workload: --workload-folder mine --case=training\n" in err


def test_cases_of_the_file_can_be_chosen(call: Caller):
    cases, _, err = call.plan("2.13", "2.14", "mine/training.py", "--case", "training[size=2]")
    assert cases == ["training[size=2]"]
    assert "--workload-folder mine '--case=training[size=2]'\n" in err


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_any_other_file_is_a_program(call: Caller, text: str):
    Path("train.py").write_text(text)
    cases, versions, err = call.plan("2.13", "2.14", "train.py")
    assert (cases, versions) == (["python train.py"], ["2.13.0", "2.14.1"])
    assert "train.py is not a workload (no build(tf, params)), so it runs as a program" in err


def test_a_program_may_be_in_another_folder(call: Caller):
    Path("mine/train.py").write_text("pass\n")
    assert call.plan("2.13", "2.14", "train.py", "--workload-folder", "mine")[0] == ["python train.py"]
    assert call.plan("2.13", "2.14", "mine/train.py")[0] == ["python mine/train.py"]


REFUSED = {
    "no file": (("no.py",), "there is no no.py in "),
    "a folder": (("folder.py",), "there is no folder.py in "),
    "no Python": (("broken.py",), "broken.py: cannot be read as Python: "),
    "two files": (("mine/training.py", "train.py"), "name one file; --workload-folder measures all"),
    "a command line": (("python", "train.py"), "To measure a program, put its command after --"),
    "a program as well": (("train.py", "--", "python", "train.py"), "there is already a program after --"),
    "a suite": (("mine/training.py", "--suite", "smoke"), "--suite: mine/training.py is a workload"),
    "a folder of workloads": (
        ("training.py", "--workload-folder", "mine"),
        "--workload-folder: training.py is a workload",
    ),
    "cases of a program": (("train.py", "--case", "power"), "--case: not for a program"),
    "packages of a workload": (("mine/training.py", "--requirements", "r.txt"), "a workload file has REQUIREMENTS"),
    "a file outside": (("../outside.py",), "a version sees"),
    "the file as a folder": (
        ("--workload-folder", "mine/training.py"),
        "it is a file: name its folder, or tfcompare run",
    ),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_file_does_not_go_with_is_said(call: Caller, words: tuple[str, ...], message: str):
    Path("train.py").write_text("pass\n")
    Path("broken.py").write_text("def (\n")
    Path("folder.py").mkdir()
    Path("../outside.py").write_text("pass\n")
    code, out, err = call("2.13", "2.14", *words)
    assert (code, out) == (2, "")
    assert message in err


def test_a_file_takes_the_place_of_the_workloads_of_a_folders_settings(call: Caller):
    Path("train.py").write_text("pass\n")
    Path("tfcompare.toml").write_text('workload-folder = "../elsewhere"\nsuite = "smoke"\ncases = ["power"]\n')
    assert call.plan("2.13", "2.14", "train.py")[0] == ["python train.py"]
    assert call.plan("2.13", "2.14", "mine/training.py")[0] == ["training[size=1]", "training[size=2]"]


@pytest.mark.parametrize("key", ["versions", "targets"])
def test_a_file_is_no_target_in_the_place_of_those_that_need_trust(call: Caller, key: str):
    Path("train.py").write_text("pass\n")
    target = "wheel=evil-1-py3-none-any.whl as evil"
    Path("tfcompare.toml").write_text(f"{key} = {json.dumps([target] if key == 'targets' else target)}\n")
    code, _, err = call("train.py")
    assert code == 2
    assert f"tfcompare.toml: {key} counts only in a folder that you trust" in err


def install(prefix: Path, *names: str, venv: bool = True) -> None:
    place = prefix / "lib" / "python3.11" / "site-packages"
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        (place / name).mkdir()
    (prefix / "bin").mkdir(exist_ok=True)
    (prefix / "bin" / "python").write_text("#!/bin/sh\nexit 99\n")
    (prefix / "bin" / "python").chmod(0o755)
    if venv:
        (prefix / "pyvenv.cfg").write_text("version = 3.11.2\n")


NEWEST = catalog.releases()[-1].number


@pytest.mark.parametrize("variable", [*active.VARIABLES, "PATH"])
def test_without_targets_the_active_tensorflow_is_compared_with_the_newest(
    call: Caller, tmp_path: Path, monkeypatch, variable: str
):
    install(tmp_path / "env", "tensorflow_cpu-2.13.0.dist-info", "tensorflow_estimator-2.13.0.dist-info")
    monkeypatch.setenv(
        variable, f"{tmp_path}/env/bin:{os.environ['PATH']}" if variable == "PATH" else f"{tmp_path}/env"
    )
    _, versions, err = call.plan("-c", "power")
    assert versions == ["2.13.0", NEWEST]
    assert f"comparing TensorFlow 2.13.0 of {tmp_path}/env with the newest, {NEWEST}; to compare others" in err
    Path("train.py").write_text("pass\n")
    cases, versions, _ = call.plan("train.py")
    assert (cases, versions) == (["python train.py"], ["2.13.0", NEWEST])
    # What is set or typed goes before it.
    assert call.plan("2.14", "2.15", "-c", "power")[1] == ["2.14.1", "2.15.1"]
    Path("tfcompare.toml").write_text('targets = ["2.15", "2.16"]\n')
    assert call.plan("-c", "power")[1] == ["2.15.1", "2.16.2"]


NOTHING = {
    "no TensorFlow": ("numpy-1.26.0.dist-info", "tensorflow_io-0.3.0.dist-info", "tensorflow-text.dist-info"),
    "two of them": ("tensorflow-2.13.0.dist-info", "tf_nightly-2.22.0.dev20261101.dist-info"),
    "no number": ("tensorflow-x.y.dist-info",),
}


@pytest.mark.parametrize("names", NOTHING.values(), ids=NOTHING)
def test_where_none_is_found_there_is_nothing_to_compare(call: Caller, tmp_path: Path, monkeypatch, names):
    install(tmp_path / "env", *names)
    monkeypatch.setenv("VIRTUAL_ENV", f"{tmp_path}/env")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(active.sys, "prefix", "/nonexistent")
    code, _, err = call("-c", "power")
    assert (code, err) == (
        2,
        "tfcompare: there is nothing to compare: name versions, the baseline first, e.g. --versions 1.14,2.0,2.13\n",
    )


def test_the_newest_is_not_compared_with_itself(call: Caller, tmp_path: Path, monkeypatch):
    install(tmp_path / "env", f"tensorflow-{NEWEST}.dist-info")
    monkeypatch.setenv("VIRTUAL_ENV", f"{tmp_path}/env")
    code, _, err = call("-c", "power")
    assert code == 2
    assert f"there is nothing to compare: TensorFlow {NEWEST} of {tmp_path}/env is the newest; name versions" in err


def test_what_a_user_installed_for_a_systems_python_counts(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    install(tmp_path / "usr", venv=False)
    install(tmp_path / ".local", "tensorflow-2.15.0+nv23.11.dist-info")
    found = active.find_active({"PATH": f"{tmp_path}/usr/bin"})
    assert found == active.ActiveTensorFlow("2.15.0", tmp_path / "usr")
    (tmp_path / "usr" / "pyvenv.cfg").touch()
    monkeypatch.setattr(active.sys, "prefix", "/nonexistent")
    assert active.find_active({"PATH": f"{tmp_path}/usr/bin"}) is None
