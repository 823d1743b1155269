"""A search over the releases of a package, with the version of TensorFlow held fixed."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.bisect import estimate, report, run
from orchestrator.bisect.actions import SearchActions
from orchestrator.bisect.findings import version_of
from orchestrator.bisect.state import Question
from orchestrator.errors import UsageError
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View
from tests.conftest import ROOT
from tests.support.builders import case, target
from tests.support.search_steps import measure_by, provide

CASE = case("power", style="function")
KERAS = ("3.4.0", "3.5.0", "3.6.0", "3.7.0", "3.8.0", "3.9.0")
QUESTION = Question(
    good="2.20 keras==3.5.0 TF_X=1", bad="2.20 keras==3.8.0 TF_X=1", over="keras",
    run=RunOptions(selected=(CASE.label,), engine="venv", rounds=4),
)  # fmt: skip
SCHEMA = json.loads((ROOT / "docs" / "schema" / "bisect-1.json").read_text())


def measure(slow_until: str, asked: list[tuple[str, ...]]):
    """A run of these targets; releases up to one are slow."""
    return measure_by(lambda name: KERAS.index(name.removeprefix("keras-")) <= KERAS.index(slow_until), asked)


def actions(slow_until: str = "3.6.0") -> tuple[SearchActions, list[tuple[str, ...]], list[tuple[str, str]]]:
    asked: list[tuple[str, ...]] = []
    looked_up: list[tuple[str, str]] = []

    def releases(package: str, python: str) -> Iterable[str]:
        looked_up.append((package, python))
        return KERAS

    hands = SearchActions(
        measure=measure(slow_until, asked), provide=provide, releases=releases, obstacle=lambda *about: None
    )
    return hands, asked, looked_up


def test_the_release_of_the_package_is_found_with_everything_else_as_it_is(tmp_path: Path):
    hands, asked, looked_up = actions()
    folder, state = run.begin(QUESTION, tmp_path / "hunt", View(), hands)
    assert looked_up == [("keras", "3.11")]
    assert state.candidates == ("keras-3.5.0", "keras-3.6.0", "keras-3.7.0", "keras-3.8.0")
    assert "that it shares with TensorFlow 2.20.0" in " ".join(estimate._installs(["x"], state, tmp_path))
    done = run.run_search(folder, state, View(), actions=hands)
    assert asked[0] == (
        "2.20.0 TF_X=1 keras==3.5.0 as keras-3.5.0", "2.20.0 TF_X=1 keras==3.8.0 as keras-3.8.0",
    )  # fmt: skip
    assert done.result.main
    assert (done.result.main.earlier, done.result.main.later) == ("keras-3.6.0", "keras-3.7.0")
    told = report.describe_search(done.state)
    assert "releases of keras, with TensorFlow 2.20.0 TF_X=1 and its other packages held fixed" in told
    written = report.search_as_object(done.state, done.result)
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(written)))
    assert (written["over"], written["version"], written["measured_with"]) == ("keras", "2.20.0", ["TF_X=1"])
    # Whoever asks the same question again continues its search.
    assert run.begin(QUESTION, tmp_path / "hunt", View(), hands)[1].candidates == state.candidates


def test_two_releases_that_do_not_differ_have_nothing_between_them(tmp_path: Path):
    hands, _, _ = actions(slow_until="3.9.0")
    folder, state = run.begin(QUESTION, tmp_path / "hunt", View(), hands)
    done = run.run_search(folder, state, View(), actions=hands)
    assert done.result.overall
    assert done.result.overall.verdict == "same"
    assert "nothing to find" in str(done.error)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"good": "2.20"}, "--good '2.20': --over keras needs a target that pins one release of it"),
        ({"good": "2.20 'keras>=3.5'"}, "needs a target that pins one release of it, such as '2.20 keras==3.8.0'"),
        ({"good": "2.20 'keras==3.*'"}, "needs a target that pins one release of it"),
        ({"good": "2.19 keras==3.5.0 TF_X=1"}, "differ in more than keras: a search over a package keeps everything"),
        ({"good": "2.20 keras==3.5.0"}, "differ in more than keras"),
        ({"good": "2.20 keras==3.8.0 TF_X=1"}, "--good and --bad are both keras 3.8.0: name two versions"),
        ({"good": "2.20 keras==3.9.0 TF_X=1"}, "--good keras 3.9.0 is newer than --bad keras 3.8.0"),
        ({"good": "2.20 keras==3.5.0 as a"}, "without wheel=, image=, freeze= or a name"),
        ({"over": "tensorflow"}, "--over tensorflow: leave it out; without it, TensorFlow's versions are searched"),
        ({"nightlies": True}, "--nightlies varies TensorFlow, and --over keras does not"),
        ({"over": ""}, r"give both the same changes, .*\. To search the releases of a package, add --over keras"),
    ],
)
def test_ends_that_are_none_of_such_a_search_are_refused(tmp_path: Path, changes: dict, words: str):
    hands, asked, _ = actions()
    with pytest.raises(UsageError, match=words):
        run.begin(replace(QUESTION, **changes), tmp_path / "hunt", View(), hands)
    assert not asked


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("2.20.0", "2.20.0"), ("2.20.0+TF_X=1", "2.20.0"), ("2.20.0+numpy<2", "2.20.0"), ("2.20.0+today", "2.20.0"),
        ("2.20.0+py=3.12+keras==3.8.0", "2.20.0"), ("1.15.5+nv23.03", "1.15.5+nv23.03"),
        ("1.15.5+nv23.03+TF_X=1", "1.15.5+nv23.03"), ("keras-3.8.0", "keras-3.8.0"),
    ],
)  # fmt: skip
def test_what_follows_a_version_is_no_part_of_it(name: str, version: str):
    assert version_of(target(name)) == version
