"""`tfcompare check` tries a workload with real workers and a stub of TensorFlow, and says what is wrong with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.cli import check
from orchestrator.engines import ENGINES
from orchestrator.measure.trial import LONG_NS, TriedArm
from orchestrator.model import Case
from tests.conftest import ROOT
from tests.support.builders import target
from tests.support.commands import called
from tests.support.stub import write
from tests.support.stub_engine import Engine

SCHEMA = json.loads((ROOT / "docs" / "schema" / "check-1.json").read_text())
WORKLOADS = {
    "good": "PARAMS = {'size': (1, 2)}\ndef build(tf, params): return lambda: sum(range(100000 * params['size']))\n",
    "greedy": "def build(tf, params): return lambda batch: batch\n",
    "none": "def build(tf, params): pass\n",
    "picky": "def refuse(tf, params): return 'not here'\ndef build(tf, params): pass\n",
    "quick": "def build(tf, params): return int\n",
    "slow": "import time\ndef build(tf, params): return lambda: time.sleep(0.15)\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stub = write(tmp_path / "stub")
    monkeypatch.setitem(ENGINES, "venv", replace(ENGINES["venv"], make=lambda options: Engine(stub)))
    own = tmp_path / "own"
    own.mkdir()
    for name, source in WORKLOADS.items():
        (own / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    return own


def tried(monkeypatch, capsys, path: Path, *words: str) -> tuple[int, list[dict[str, object]]]:
    code = called(monkeypatch, "check", str(path), *words, "--engine", "venv", "--format", "json", "--quiet")
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(found)
    return code, found["arms"]


def test_every_case_is_tried_in_every_target(folder: Path, monkeypatch, capsys):
    code, arms = tried(monkeypatch, capsys, folder / "good.py", "1.14", "2.0 TF_X=1 as changed")
    assert code == 0
    assert [(arm["params"], arm["target"]) for arm in arms] == [
        ({"size": size}, version) for size in ("1", "2") for version in ("1.14.0", "changed")
    ]
    assert {arm["outcome"] for arm in arms} == {"ran"}
    assert all(arm["build_s"] and arm["first_s"] and arm["second_s"] for arm in arms)


def test_one_version_is_enough_and_the_newest_is_taken_without_any(folder: Path, monkeypatch, capsys):
    code, arms = tried(monkeypatch, capsys, folder / "good.py")
    assert (code, len(arms)) == (0, 2)
    assert str(arms[0]["target"]).startswith("2.21")


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("greedy", 6, "missing 1 required positional argument"),
        ("none", 6, "build() returned NoneType; it must return the function to measure"),
        ("picky", 0, "not here"),
        ("quick", 0, "is too short to be timed: let it do more steps, and set step.steps"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, monkeypatch, capsys, name: str, code: int, words: str):
    ended, [arm] = tried(monkeypatch, capsys, folder / f"{name}.py", "2.13")
    assert ended == code
    assert words in str(arm["note"])


def test_a_long_call_is_not_made_more_often_than_twice(folder: Path, monkeypatch, capsys):
    code, [arm] = tried(monkeypatch, capsys, folder / "slow.py", "2.13")
    assert (code, arm["outcome"], arm["note"]) == (0, "ran", "")
    assert arm["second_s"] >= 0.15


def test_nothing_is_left_of_a_trial(folder: Path, monkeypatch, capsys):
    before = sorted(folder.parent.iterdir())
    tried(monkeypatch, capsys, folder / "good.py", "2.13")
    assert sorted(folder.parent.iterdir()) == before


@pytest.mark.parametrize("name", ["absent.py", "good", "."])
def test_what_is_no_file_of_a_workload_is_refused(folder: Path, monkeypatch, capsys, name: str):
    assert called(monkeypatch, "check", str(folder / name)) == 2
    assert "name the file of a workload" in capsys.readouterr().err


def test_the_table_shows_times_and_notes(folder: Path, monkeypatch, capsys):
    assert called(monkeypatch, "check", str(folder / "picky.py"), "2.13", "--engine", "venv") == 0
    out = capsys.readouterr().out
    assert "second call" in out
    assert "refused: not here" in " ".join(out.split())


def test_the_table_shows_what_a_call_returned(capsys):
    ran = TriedArm(
        case=Case("x", ()),
        target=target("2.13.0"),
        outcome="ran",
        build_ns=1,
        first_ns=1,
        second_ns=1,
        least_ns=1,
        output="int64[2]",
    )
    check._print([ran], "table")
    assert "int64[2]; a call of" in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_long_calls_and_many_steps_are_noted():
    times = dict.fromkeys(("build_ns", "first_ns", "second_ns", "least_ns"), 10**9)
    arm = TriedArm(case=Case("x", ()), target=target("2.13.0"), outcome="ran", **times)
    assert arm.note == ""
    assert replace(arm, steps=10).note == "10 steps of 100 ms"
    assert "few calls of this length" in replace(arm, least_ns=LONG_NS + 1).note
