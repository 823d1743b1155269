"""The command's flags: what is missing, what does not go together, and what a search that is done says again."""

import json
import sys
from pathlib import Path

import pytest

from orchestrator.bisect import state
from orchestrator.cli import main
from tests.support.searches import RELEASES, SCENES, SEVERAL, told
from tests.support.worlds import stepped

CASE = "predict[call=predict,state=uncompiled,model=tiny]"
ENDS = ["--good", "1.14", "--bad", "2.3"]


def called(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tfcompare", "bisect", *argv])
    monkeypatch.setattr("signal.signal", lambda number, action: None)
    with pytest.raises(SystemExit) as left:
        main.main()
    return left.value.code


BAD_CALLS = {
    "nothing": ([], 2, "--good, --bad, --case missing"),
    "no case": (ENDS, 2, "--case missing"),
    "several cases": ([*ENDS, "--case", "predict[call=predict]"], 2, "is about one case, and the selection has 2"),
    "an unknown version": (["--good", "1.14", "--bad", "2.130", "--case", CASE], 2, "did you mean 2.13"),
    "ends turned round": (["--good", "2.3", "--bad", "1.14", "--case", CASE], 2, "name the older one as --good"),
    "one end twice": (["--good", "2.3", "--bad", "2.3.4", "--case", CASE], 2, "name two versions"),
    "a range": (["--good", "1.14..2.0", "--bad", "2.3", "--case", CASE], 2, "take one each"),
    "an unknown workload": ([*ENDS, "--case", "predct"], 2, "did you mean predict?"),
    "an unknown format": ([*ENDS, "--case", CASE, "--format", "html"], 2, "unknown format"),
    "no steps": ([*ENDS, "--case", CASE, "--steps", "0"], 2, "--steps"),
    "a folder without a search": (["--resume", "."], 2, "holds no search"),
    "other flags on the way": (["--resume", ".", "--good", "1.14", "--all"], 2, "leave --good, --all out"),
    "an unknown engine": ([*ENDS, "--case", CASE, "--engine", "podman"], 2, "unknown engine"),
}


@pytest.mark.parametrize(("flags", "code", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_ends_before_any_work(monkeypatch, capsys, tmp_path, flags: list[str], code: int, words: str):
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, *flags) == code
    streams = capsys.readouterr()
    assert words in streams.err
    assert streams.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a search that is done; what it was measured with is taken as unchanged."""
    monkeypatch.setattr(
        "orchestrator.bisect.run.resume_search",
        lambda folder, question=None, index_url=None, actions=None: state.read_state(folder),
    )
    folder = tmp_path / "hunt"
    folder.mkdir()
    state.write_state(folder, told(stepped(RELEASES, SEVERAL)))
    return folder


def test_a_search_that_is_done_is_told_again(monkeypatch, capsys, finished: Path):
    assert called(monkeypatch, "--resume", str(finished)) == 0
    streams = capsys.readouterr()
    assert "2.1.4 is slower than 2.0.0" in streams.out
    assert f"plot: {finished / 'report.html'}" in streams.err
    assert (finished / "report.html").read_text().startswith("<!doctype html>")


def test_as_an_object_it_is_all_that_is_on_stdout(monkeypatch, capsys, finished: Path):
    assert called(monkeypatch, "--resume", str(finished), "--format", "json", "--quiet") == 0
    streams = capsys.readouterr()
    assert json.loads(streams.out)["schema"] == "tfcompare.bisect/1"
    assert streams.err == ""


def test_nothing_to_find_has_an_exit_code_of_its_own_and_is_told(monkeypatch, capsys, finished: Path):
    state.write_state(finished, SCENES["same"]())
    assert called(monkeypatch, "--resume", str(finished)) == 3
    streams = capsys.readouterr()
    assert "There is nothing to find." in streams.out
    assert "nothing to find: 1.14.0 and 2.6.5 are not shown to differ" in streams.err.replace("\n", " ")
