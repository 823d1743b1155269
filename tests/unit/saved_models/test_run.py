"""The command with real workers: what they save is taken and given to all of them, whatever they do meanwhile.

Their TensorFlow is a stub, and a file of the test takes the place of the one that saves and loads.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.engines import ENGINES
from orchestrator.saved_models import run
from tests.conftest import ROOT
from tests.support.commands import called
from tests.support.stub import write
from tests.support.stub_engine import Engine

SCHEMA = json.loads((ROOT / "docs" / "schema" / "models-1.json").read_text())
# A model that is saved is the name of its version. In some models, a version does something else.
TASK = '''
"""Save and load."""
import json, os, signal, time

import numpy

from workloads import compat
from workloads.sketches import sketch

HERE = os.path.dirname(os.path.abspath(__file__))


def build(tf, params):
    def work():
        version = os.environ["VERSION"]
        if os.environ.get("REFUSE"):
            raise compat.Refused("not with this backend")
        into = os.path.join(os.environ["TFCOMPARE_RESULTS"], params["into"])
        os.makedirs(into)
        for name in params["models"].split("+"):
            path = os.path.join(into if params["do"] == "save" else os.path.join(HERE, params["from"]), name + ".h5")
            value, answer = 1.0, {"outcome": "done"}
            if params["do"] == "save":
                act = os.environ.get("SAVE_" + name)
                if act == "link":
                    os.symlink("/etc/passwd", path)
                elif act == "refuse":
                    answer = {"outcome": "refused", "message": "not here"}
                elif act != "forget":
                    open(path, "w").write(version)
            else:
                act = os.environ.get("LOAD_" + name)
                assert open(path).read() == params["from"].split("-")[0]
                if act == "crash":
                    os.kill(os.getpid(), signal.SIGSEGV)
                if act == "hang":
                    time.sleep(60)
                if act == "raise":
                    answer = {"outcome": "raised", "kind": "ValueError", "message": "no"}
                value = 2.0 if act == "differ" else 1.0
            answer["output"] = sketch(numpy.full(3, value))
            text = "{" if os.environ.get("ANSWER_" + name) else json.dumps(answer)
            open(os.path.join(into, name + ".json"), "w").write(text)
    return work
'''
# Loading takes as long as its version says.
TIMED = '''
"""Load."""
import os, time

PARAMS = {}


def build(tf, params):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), params["format"], params["model"] + ".h5")
    assert open(path).read()
    step = lambda: time.sleep(float(os.environ["LOAD_S"]))
    step.no_result = "nothing"
    return step
'''
OLD, NEW = "2.0.0", "2.13.0"


@pytest.fixture
def variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> dict[str, dict[str, str]]:
    """What the workers of each version have in their environment."""
    found: dict[str, dict[str, str]] = {OLD: {"VERSION": OLD}, NEW: {"VERSION": NEW}}
    engine = Engine(write(tmp_path / "stub"), variables=found, absent=getattr(request, "param", ()))
    monkeypatch.setitem(ENGINES, "venv", replace(ENGINES["venv"], make=lambda options: engine))
    (tmp_path / "inside" / "saving").mkdir(parents=True)
    (tmp_path / "inside" / "saving" / "saved_models.py").write_text(TASK)
    (tmp_path / "inside" / "saving" / "load_saved.py").write_text(TIMED)
    monkeypatch.setattr(run, "WORKLOADS", tmp_path / "inside")
    monkeypatch.chdir(tmp_path)
    return found


def ask(monkeypatch, capsys, *words: str, code: int = 0) -> dict[str, Any]:
    flags = ("--engine", "venv", "--format", "json", "--quiet")
    if "--saved" not in words:
        flags += ("--formats", "h5", "--models", "functional,nested,lstm")
    assert called(monkeypatch, "models", OLD, NEW, *words, *flags) == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(answer)
    return answer


def verdicts(answer: dict[str, Any], model: str) -> list[str]:
    """The verdicts of a model: saved in the old version and loaded in both, then saved in the new one."""
    return [each["verdict"] for each in answer["models"] if each["model"] == model]


@pytest.mark.slow
def test_what_one_version_saved_reaches_every_other(variables, monkeypatch, capsys):
    answer = ask(monkeypatch, capsys)
    assert {each["verdict"] for each in answer["models"]} == {"ok"}
    assert len(answer["models"]) == 3 * 2 * 2
    assert answer["failures"] == []


def test_a_crash_costs_its_own_model_alone(variables, monkeypatch, capsys):
    variables[NEW]["LOAD_nested"] = "crash"
    answer = ask(monkeypatch, capsys)
    assert verdicts(answer, "nested") == ["ok", "dies", "ok", "dies"]
    assert set(verdicts(answer, "functional") + verdicts(answer, "lstm")) == {"ok"}
    assert "killed by SIGSEGV" in answer["failures"][0]["reason"]


@pytest.mark.slow
def test_a_model_that_takes_too_long_costs_itself_alone(variables, monkeypatch, capsys):
    variables[OLD]["LOAD_lstm"] = "hang"
    answer = ask(monkeypatch, capsys, "--timeout", "2s")
    assert verdicts(answer, "lstm") == ["dies", "ok", "dies", "ok"]
    assert set(verdicts(answer, "functional") + verdicts(answer, "nested")) == {"ok"}


@pytest.mark.slow
def test_other_values_and_errors_are_named_and_end_the_command_if_asked(variables, monkeypatch, capsys):
    variables[NEW] |= {"LOAD_nested": "differ", "LOAD_lstm": "raise"}
    answer = ask(monkeypatch, capsys)
    assert verdicts(answer, "nested") == ["ok", "differs", "ok", "differs"]
    assert verdicts(answer, "lstm") == ["ok", "dies", "ok", "dies"]
    assert [each["reason"] for each in answer["failures"]] == ["returns different values, by 50%", "ValueError: no"]
    ask(monkeypatch, capsys, "--fail-on", "differs", code=1)
    ask(monkeypatch, capsys, "--fail-on", "died", code=6)
    ask(monkeypatch, capsys, "--fail-on", "differs,died", code=1)
    ask(monkeypatch, capsys, "--fail-on", "refused")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "verdict", "reason"),
    [
        ("link", "not saved", "what it saved is not used: it is a symbolic link, which is not followed"),
        ("forget", "not saved", "what it saved cannot be read: No such file or directory"),
        ("refuse", "refused", "not here"),
    ],
)
def test_what_is_not_saved_is_not_loaded(variables, monkeypatch, capsys, act: str, verdict: str, reason: str):
    variables[OLD]["SAVE_nested"] = act
    answer = ask(monkeypatch, capsys)
    assert verdicts(answer, "nested") == [verdict, verdict, "ok", "ok"]
    assert [(each["verdict"], each["reason"]) for each in answer["failures"]] == [(verdict, reason)]


@pytest.mark.slow
def test_a_version_that_refuses_all_is_no_death(variables, monkeypatch, capsys):
    variables[NEW]["REFUSE"] = "1"
    answer = ask(monkeypatch, capsys)
    assert verdicts(answer, "nested") == ["ok", "refused", "refused", "refused"]
    assert {each["reason"] for each in answer["failures"]} == {"not with this backend"}


@pytest.mark.slow
def test_an_answer_that_cannot_be_read_costs_its_model(variables, monkeypatch, capsys):
    variables[OLD]["ANSWER_nested"] = "damaged"
    answer = ask(monkeypatch, capsys)
    assert verdicts(answer, "nested") == ["not saved", "not saved", "dies", "ok"]
    assert answer["failures"][0]["reason"] == "it gave no answer"


def test_files_that_were_saved_before_are_loaded_everywhere(variables, tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "old").mkdir()
    for name in ("a.h5", "b.h5"):
        (tmp_path / "old" / name).write_text(name.split("-")[0])
    variables[NEW]["LOAD_given"] = "differ"
    answer = ask(monkeypatch, capsys, "--saved", str(tmp_path / "old"))
    assert [(each["file"], each["verdict"]) for each in answer["models"]] == [
        ("a.h5", "ok"), ("a.h5", "differs"), ("b.h5", "ok"), ("b.h5", "differs"),
    ]  # fmt: skip


@pytest.mark.parametrize("outside", [False, True])
def test_a_link_among_files_that_were_saved_before_is_refused(
    variables, tmp_path: Path, monkeypatch, capsys, outside: bool
):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.h5").symlink_to("/etc/passwd" if outside else "b.bin")
    assert called(monkeypatch, "models", OLD, NEW, "--engine", "venv", "--saved", "old") == 2
    assert "a.h5: it is a symbolic link, which is not followed" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.parametrize("variables", [(NEW,)], indirect=True)
def test_a_version_that_cannot_be_installed_costs_its_own_cells(variables, monkeypatch, capsys):
    answer = ask(monkeypatch, capsys, code=5)
    assert verdicts(answer, "nested") == ["ok", "not run"]
    assert answer["lost"] == [{"target": NEW, "reason": "no disk"}]


@pytest.mark.slow
def test_a_model_that_loads_slower_than_where_it_was_saved_is_named(variables, monkeypatch, capsys):
    variables[OLD]["LOAD_S"], variables[NEW]["LOAD_S"] = "0.004", "0.04"
    variables[NEW]["LOAD_nested"] = "raise"
    answer = ask(monkeypatch, capsys, "--time", "--budget", "40s", "--fail-on", "slower", code=1)
    assert verdicts(answer, "functional") == ["ok", "slower", "ok", "ok"]
    assert verdicts(answer, "nested") == ["ok", "dies", "ok", "dies"]
    ratios = {(each["saved_in"], each["loaded_in"]): each["ratio"] for each in answer["models"] if each["ratio"]}
    assert 5 < ratios[OLD, NEW] < 20
    assert 1 / 20 < ratios[NEW, OLD] < 1 / 5


@pytest.mark.slow
def test_the_page_and_the_object_are_in_the_run_folder(variables, tmp_path: Path, monkeypatch, capsys):
    variables[NEW]["LOAD_nested"] = "raise"
    answer = ask(monkeypatch, capsys, "--output", "out")
    assert json.loads((tmp_path / "out" / "models.json").read_text()) == answer
    page = (tmp_path / "out" / "report.html").read_text()
    assert "ValueError: no" in page
    assert "<script" not in page


@pytest.mark.slow
def test_the_table_names_each_failure_once(variables, monkeypatch, capsys):
    variables[NEW]["LOAD_nested"] = "raise"
    flags = ("--engine", "venv", "--quiet", "--formats", "h5", "--models", "functional,nested", "--details")
    assert called(monkeypatch, "models", OLD, NEW, *flags) == 0
    printed = capsys.readouterr().out
    assert printed.count("dies: ValueError: no (nested)") == 1
    assert "2.0.0 as h5 in 2.13.0; 2.13.0 as h5 in 2.13.0" in " ".join(printed.split())
    assert "  h5, 2  ok     1 dies" in printed
