"""Requests of programs: which command line each becomes, and what no request can reach."""

from pathlib import Path

import pytest

pytest.importorskip("mcp")

from orchestrator.catalog import trust
from orchestrator.cli.program_server import make_words
from orchestrator.cli.verbs import VERBS, ServedFolder
from orchestrator.errors import UsageError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServedFolder:
    monkeypatch.delenv(trust.VARIABLE, raising=False)
    folder = tmp_path / "project"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "one.py").write_text("def build(tf, params): return len\n")
    (folder / "runs" / "newest").mkdir(parents=True)
    (folder / "runs" / "newest" / "plan.json").write_text("{}")
    (folder / "out").symlink_to(tmp_path)
    (tmp_path / "other").mkdir()
    (folder / "runs" / "linked").symlink_to(tmp_path / "other")
    monkeypatch.chdir(folder)
    return ServedFolder(folder.resolve())


WORDS = {
    "list": ({"what": "workloads"}, "list workloads --format=json"),
    "check": (
        {"file": "mine/one.py", "targets": ["2.13"]},
        "check {folder}/mine/one.py 2.13 --engine=docker --format=json",
    ),
    "run": (
        {"targets": ["2.13", "2.16"], "cases": ["power"], "budget": "1m", "metrics": ["time", "memory"]},
        "run 2.13 2.16 --case=power --metric=time,memory --engine=auto --budget=1m --format=json",
    ),
    "why": (
        {"targets": ["2.13", "2.16"], "case": "power", "metric": "first", "engine": "venv"},
        "why 2.13 2.16 --case=power --metric=first --engine=venv --format=json",
    ),
    "upgrade": (
        {"old": "2.8", "new": "2.16", "program": ["python", "train.py", "--epochs", "1"], "gates": "died"},
        "upgrade 2.8 2.16 --fail-on=died --engine=docker --format=json -- python train.py --epochs 1",
    ),
    "compare": ({"earlier": "runs/a", "later": "last"}, "compare {folder}/runs/a {folder}/runs/newest --format=json"),
    "report": ({}, "report {folder}/runs/newest --format=json"),
    "explain": ({"run": "runs/a", "case": "power"}, "report {folder}/runs/a --explain=power --format=json"),
    "bisect": (
        {"good": "2.8", "bad": "2.16", "case": "power"},
        "bisect --good=2.8 --bad=2.16 --case=power --engine=auto --format=json",
    ),
    "doctor": ({}, "doctor --no-probe --format=json"),
}


def test_there_are_ten_verbs_and_each_describes_itself():
    assert list(VERBS) == list(WORDS)
    assert len(VERBS) == 10
    for verb in VERBS.values():
        assert verb.__doc__
        assert verb.model_json_schema()["additionalProperties"] is False


@pytest.mark.parametrize("verb", WORDS)
def test_a_request_becomes_a_command_line(place: ServedFolder, verb: str):
    arguments, words = WORDS[verb]
    assert make_words(verb, arguments, place) == words.format(folder=place.folder).split(" ")


def test_a_run_is_continued_as_it_was_planned(place: ServedFolder):
    words = ["run", f"--resume={place.folder}/runs/a", "--budget=1m", "--format=json"]
    assert make_words("run", {"resume": "runs/a", "budget": "1m"}, place) == words
    with pytest.raises(UsageError, match="leave out program"):
        make_words("run", {"resume": "runs/a", "program": ["python", "x.py"]}, place)


def test_why_takes_a_run_or_two_targets(place: ServedFolder):
    words = ["why", f"{place.folder}/runs/newest", "power", "--format=json"]
    assert make_words("why", {"run": "last", "case": "power"}, place) == words
    with pytest.raises(UsageError, match="leave out engine"):
        make_words("why", {"run": "last", "engine": "venv"}, place)
    with pytest.raises(UsageError, match="either the run"):
        make_words("why", {}, place)


# A stranger's text may make a program ask for these.
FOREIGN = {
    "flag in targets": ("run", {"targets": ["2.13", "--output=/etc"]}),
    "flag in words": ("list", {"what": "versions", "containing": ["--workload-folder=/"]}),
    "flag as case": ("why", {"run": "last", "case": "--output=/etc"}),
    "unknown field": ("run", {"targets": ["2.13"], "index_url": "https://evil.example"}),
    "unknown verb": ("trust", {}),
    "another verb": ("config", {}),
    "file among targets": ("run", {"targets": ["2.13", "2.16", "mine/one.py"]}),
    "run among targets": ("why", {"targets": ["last", "power"], "case": "x"}),
    "folder outside": ("run", {"targets": ["2.13", "2.16"], "workload_folder": "../other"}),
    "absolute folder": ("run", {"targets": ["2.13", "2.16"], "workload_folder": "/etc"}),
    "folder behind a link": ("run", {"targets": ["2.13", "2.16"], "workload_folder": "out/other"}),
    "file outside": ("check", {"file": "../other/one.py"}),
    "run outside": ("report", {"run": "../other/run"}),
    "explained run outside": ("explain", {"run": "/etc", "case": "x"}),
    "compared run outside": ("compare", {"earlier": "/etc", "later": "last"}),
    "resumed run outside": ("run", {"resume": "../other"}),
    "link to a run outside": ("report", {"run": "runs/linked"}),
    "wheel outside": ("run", {"targets": ["2.13", "wheel=../other/evil.whl as x"]}),
    "freeze outside": ("run", {"targets": ["2.13", "freeze=/etc/passwd"]}),
    "package without a container": ("run", {"targets": ["2.13", "2.13 evil==1.0"], "engine": "venv"}),
    "program without a container": ("run", {"targets": ["2.13", "2.16"], "program": ["sh"], "engine": "venv"}),
    "folder without a container": (
        "bisect", {"good": "2.8", "bad": "2.16", "case": "one", "workload_folder": "mine", "engine": "venv"},
    ),
    "commits": ("bisect", {"good": "2.8", "bad": "2.16", "case": "power", "over": "keras@git"}),
    "wrong type": ("run", {"targets": "2.13"}),
    "truthy text": ("run", {"targets": ["2.13"], "gpu": "yes"}),
    "too many": ("run", {"targets": ["2.13"] * 101}),
    "too long": ("run", {"targets": ["2.13"], "budget": "1" * 5000}),
    "control characters": ("explain", {"case": "a\x1b[2J"}),
    "flag as engine": ("run", {"targets": ["2.13"], "engine": "docker --output=/etc"}),
}  # fmt: skip


@pytest.mark.parametrize("attack", FOREIGN)
def test_a_request_reaches_nothing_that_the_user_has_not_allowed(place: ServedFolder, attack: str):
    with pytest.raises(UsageError):
        make_words(*FOREIGN[attack], place)


def test_no_value_becomes_a_flag(place: ServedFolder):
    flags = {"cases": ["--output=/etc"], "suite": "--output=/etc", "margin": "-o", "budget": "-o /etc"}
    words = make_words("run", {"targets": ["2.13", "2.16"], **flags}, place)
    assert words[3:7] == ["--case=--output=/etc", "--suite=--output=/etc", "--margin=-o", "--engine=auto"]


@pytest.mark.parametrize("how", ["folder", "above", "everything"])
def test_what_the_user_allowed_runs_as_the_user(place: ServedFolder, monkeypatch: pytest.MonkeyPatch, how: str):
    request = ("run", {"targets": ["2.13", "2.13 numpy==1.24.3"], "workload_folder": "mine", "engine": "venv"})
    allowed = {"folder": (place.folder,), "above": (place.folder.parent,), "everything": ()}[how]
    if how == "everything":
        monkeypatch.setenv(trust.VARIABLE, "1")
    assert "--engine=venv" in make_words(*request, ServedFolder(place.folder, allowed))


def test_allowing_the_workloads_allows_no_other_code(place: ServedFolder):
    allowed = ServedFolder(place.folder, (place.folder / "mine",))
    own = {"targets": ["2.13", "2.16"], "workload_folder": "mine", "engine": "venv"}
    assert "--engine=venv" in make_words("run", own, allowed)
    for request in (
        {"targets": ["2.13", "2.13 numpy==1.24.3"], "engine": "venv"},
        {"targets": ["2.13", "2.16"], "program": ["python", "x.py"], "engine": "venv"},
    ):
        with pytest.raises(UsageError, match="has not allowed"):
            make_words("run", request, allowed)


def test_the_newest_run_is_not_followed_out_of_the_folder(place: ServedFolder):
    newest = place.folder / "runs" / "newest"
    newest.rename(place.folder.parent / "other" / "run")
    newest.symlink_to(place.folder.parent / "other" / "run")
    with pytest.raises(UsageError, match="outside of"):
        make_words("report", {}, place)
