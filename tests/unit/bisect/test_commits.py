"""A search over the commits of a package: its ends, its candidates, and what a build leaves."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.bisect import commits, report, run
from orchestrator.bisect.actions import SearchActions
from orchestrator.bisect.state import Question
from orchestrator.catalog import git
from orchestrator.engines import SOURCE, WHEELS
from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import EnvironmentFailed, NothingSelected, UsageError
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View
from tests.support import packages, repository
from tests.support.builders import case
from tests.support.search_steps import measure_by, provide

CASE = case("power", style="function")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package with two releases, and three commits between them."""
    folder = repository.begin(tmp_path / "checkout")
    repository.commit(folder, {"steplib.py": "0"}, "v1.0")
    for number in (1, 2, 3):
        repository.commit(folder, {"steplib.py": str(number)})
    repository.commit(folder, {"steplib.py": "4"}, "v1.1")
    return folder


@pytest.fixture
def question(checkout: Path) -> Question:
    return Question(
        good="2.20 steplib==1.0 TF_X=1",
        bad="2.20 steplib@main TF_X=1",
        over="steplib@git",
        source=checkout,
        run=RunOptions(selected=(CASE.label,), engine="venv", rounds=4),
    )


def names(checkout: Path) -> list[str]:
    return [
        f"steplib-{line}" for line in repository.git(checkout, "log", "--reverse", "--format=%h", "--abbrev=12").split()
    ]


def actions(slow: Callable[[str], bool], unbuildable: str = "") -> tuple[SearchActions, list[tuple[str, ...]]]:
    built: list[tuple[str, ...]] = []

    def build(folder: Path, state: object, wanted: tuple[str, ...], view: View) -> dict[str, Path]:
        built.append(wanted)
        if unbuildable in wanted:
            raise EnvironmentFailed("its wheel could not be built: pip ended with 1", target=unbuildable)
        return {name: folder / f"{name}.whl" for name in wanted}

    asked: list[tuple[str, ...]] = []
    hands = SearchActions(measure=measure_by(slow, asked), provide=provide, build=build, obstacle=None)
    return hands, asked


def test_the_commit_that_changed_a_case_is_found(question: Question, checkout: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(run, "find_obstacle", lambda *about: None)
    every = names(checkout)
    hands, asked = actions(lambda name: every.index(name) < 3)
    folder, state = run.begin(question, tmp_path / "hunt", View(), hands)
    assert state.candidates == tuple(every)
    assert (state.question.good, state.question.bad) == (every[0], every[-1])
    assert (state.question.version, state.question.changes) == ("2.20.0", ("TF_X=1",))
    done = run.run_search(folder, state, View(), actions=hands)
    assert asked[0][0] == f"2.20.0 TF_X=1 wheel={folder / every[0]}.whl as {every[0]}"
    [part] = [part for part in done.result.parts if part.changed]
    assert (part.earlier, part.later) == (every[2], every[3])
    assert "commits of steplib, with TensorFlow 2.20.0 TF_X=1" in report.describe_search(done.state)
    shown = commits.show_commit(done.state.question, part.later)
    assert shown == f"git -C {checkout} show {every[3].removeprefix('steplib-')}"
    assert "-1" in repository.git(checkout, *shown.split()[3:])


def test_commits_that_change_nothing_are_not_blamed(question: Question, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(run, "find_obstacle", lambda *about: None)
    hands, asked = actions(lambda name: False)
    folder, state = run.begin(question, tmp_path / "hunt", View(), hands)
    done = run.run_search(folder, state, View(), actions=hands)
    assert isinstance(done.error, NothingSelected)
    assert len(asked) == 1


def test_a_commit_that_cannot_be_built_is_left_out(question: Question, checkout: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(run, "find_obstacle", lambda *about: None)
    every = names(checkout)
    hands, _ = actions(lambda name: every.index(name) < 3, unbuildable=every[2])
    folder, state = run.begin(question, tmp_path / "hunt", View(), hands)
    done = run.run_search(folder, state, View(), actions=hands)
    assert "pip ended with 1" in done.state.skipped[every[2]].reason
    [part] = [part for part in done.result.parts if part.changed]
    assert (part.earlier, part.later) == (every[1], every[3])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"good": "2.20"}, "'2.20': --over steplib@git needs a target with one release or commit of it, such as"),
        ({"good": "2.20 steplib==9"}, "has no v9 and no 9 and no steplib-9"),
        ({"good": "2.20 steplib@gone"}, "has no gone"),
        ({"good": "2.20 steplib@--all"}, "--all names no commit"),
        ({"good": "2.20 'steplib>1'"}, "needs a target with one release or commit"),
        ({"good": "2.19 steplib==1.0 TF_X=1"}, "differ in more than steplib: a search over its commits keeps"),
        ({"good": "2.20 steplib@v1.1 TF_X=1"}, "no commit leads from one to the other"),
        ({"good": "2.20 '"}, "a quotation mark is not closed"),
        (
            {"good": "2.20 steplib@v1.0 wheel=a.whl", "bad": "2.20 steplib@v1.1 wheel=a.whl"},
            "take a version, without wheel=",
        ),
        ({"nightlies": True}, "--nightlies varies TensorFlow"),
        ({"over": "tensorflow@git"}, "a build of TensorFlow takes hours; --nightlies searches the builds of each day"),
        (
            {"source": None},
            "add --source with a checkout of its repository; without one, tfcompare knows only the repository of keras",
        ),
        ({"source": Path("/")}, "--source /: git cannot read it: not a git repository"),
    ],
)
def test_a_question_that_no_search_can_answer_is_refused(
    question: Question, tmp_path: Path, changes: dict, message: str
):
    hands, _ = actions(lambda name: False)
    with pytest.raises(UsageError) as error:
        run.begin(replace(question, **changes), tmp_path / "hunt", View(), hands)
    assert message in str(error.value)


def test_without_a_container_a_public_repository_is_not_built(question: Question, tmp_path: Path):
    asked = replace(question, over="keras@git", source=None, good="2.20 keras==3.7.0", bad="2.20 keras==3.8.0")
    hands, _ = actions(lambda name: False)
    with pytest.raises(UsageError, match="take --engine docker, or name a checkout that you trust with --source"):
        run.begin(asked, tmp_path / "hunt", View(), hands)


def test_a_public_repository_is_copied_once_and_then_updated(checkout: Path, tmp_path: Path):
    copy = tmp_path / "cache" / "steplib.git"
    url = f"file://{checkout}"
    git.mirror(url, copy)
    first = git.find_commit(copy, "v1.1")
    repository.commit(checkout, {"steplib.py": "5"}, "v1.2")
    git.mirror(url, copy)
    assert git.list_commits(copy, first, "v1.2") == [repository.git(checkout, "rev-parse", "v1.2")]
    assert not list((copy / "hooks").glob("*")) if (copy / "hooks").exists() else True
    with pytest.raises(git.GitFailed):
        git.mirror(f"file://{tmp_path / 'nowhere'}", tmp_path / "cache" / "other.git")
    assert not (tmp_path / "cache" / "other.git").exists()
    # A server may point to another transport.
    with pytest.raises(git.GitFailed):
        git.mirror(f"ext::touch {tmp_path / 'ran'}", tmp_path / "cache" / "evil.git")
    assert not (tmp_path / "ran").exists()


class Builder:
    """Stands in for an environment: leaves what a build would."""

    def __init__(self, leave: Callable[[Path], object]) -> None:
        self._leave = leave

    def build(self, folder: Path, log: BuildLog) -> None:
        assert (folder / SOURCE / "steplib.py").read_text() == "0"
        self._leave(folder / WHEELS)


def _link(folder: Path) -> None:
    (folder / "steplib-1.0-py3-none-any.whl").symlink_to("/etc/hostname")


def _replace(folder: Path) -> None:
    folder.rmdir()
    folder.symlink_to("/etc")


@pytest.mark.parametrize(
    ("leave", "message"),
    [
        (lambda folder: None, "it left nothing instead of one wheel"),
        (lambda folder: [packages.wheel(folder, name) for name in ("one", "two")], "instead of one wheel"),
        (lambda folder: packages.wheel(folder, "other"), "it is the wheel of other"),
        (lambda folder: (folder / "steplib-1.0-py3-none-any.whl").write_text("x"), "it cannot be read as a wheel"),
        (lambda folder: os.mkfifo(folder / "steplib-1.0-py3-none-any.whl"), "it is not a regular file"),
        (lambda folder: (folder / "\x1b[2J.whl").write_text("x"), "instead of one wheel"),
        (_link, "wheel could not be built"),
        (_replace, "wheel could not be built"),
    ],
)
def test_what_a_build_leaves_is_not_trusted(
    question: Question, checkout: Path, tmp_path: Path, leave, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    name = names(checkout)[0]
    with pytest.raises(EnvironmentFailed) as error:
        commits._build(
            question, name, Builder(leave), tmp_path / "cache" / "commits" / name, BuildLog(tmp_path / "log")
        )
    assert message in str(error.value)
    assert "\x1b" not in str(error.value)
    assert os.listdir(tmp_path / "cache" / "commits") == []


def test_wheels_of_commits_that_begin_alike_are_kept_apart(question: Question, checkout: Path, monkeypatch):
    name = names(checkout)[0]
    place = commits._find_place(question, name, "venv 2.20.0")
    assert commits._find_place(question, name, "venv 2.20.0") == place
    assert commits._find_place(question, name, "docker 2.20.0") != place
    begun = repository.git(checkout, "rev-parse", "v1.0")[:12]
    monkeypatch.setattr(git, "find_commit", lambda folder, ref: f"{begun}{28 * '0'}")
    assert commits._find_place(question, name, "venv 2.20.0") != place


def test_a_wheel_is_kept_for_the_next_search(
    question: Question, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    name, kept = names(checkout)[0], tmp_path / "cache" / "commits" / "one"
    builder = Builder(lambda folder: packages.wheel(folder, "steplib"))
    commits._build(question, name, builder, kept, BuildLog(tmp_path / "log"))
    assert commits._find_wheel(kept) == kept / "steplib-1.0-py3-none-any.whl"
    assert os.listdir(kept.parent) == ["one"]
