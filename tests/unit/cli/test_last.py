"""`last` is the newest run wherever a run is asked for."""

import os
from pathlib import Path

import pytest

from orchestrator.cli import runs
from tests.support.commands import called
from tests.support.small_run import write_run


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for age, name in enumerate(("new", "old")):
        path = write_run(tmp_path / "runs" / name, run=name)
        os.utime(path / "plan.json", (10_000 - age, 10_000 - age))
    return tmp_path


COMMANDS = {
    "report": (("report", "last"), "▲ slower"),
    "export": (("export", "last", "--format", "csv"), '"workload"'),
    "compare": (("compare", "runs/old", "last"), "ratios in both: "),
    "compare, the other way": (("compare", "last", "runs/old"), "ratios in both: "),
    "comment": (("comment", "last", "--dry-run"), "### tfcompare"),
    "history import": (("history", "import", "last", "--history", "history"), ""),
}


@pytest.mark.parametrize(("words", "shown"), COMMANDS.values(), ids=COMMANDS)
def test_last_is_the_newest_run(there: Path, monkeypatch, capsys, words: tuple[str, ...], shown: str):
    assert called(monkeypatch, *words) == 0
    out, err = capsys.readouterr()
    assert shown in out
    assert "the newest run: runs/new" in err


def test_a_run_that_continues_may_be_the_last(there: Path, monkeypatch, capsys):
    called(monkeypatch, "run", "--resume", "last", "--rounds", "2", "--dry-run")
    assert "the newest run: runs/new" in capsys.readouterr().err


def test_two_runs_are_merged_by_the_names_that_they_have(there: Path, monkeypatch, capsys):
    # They are of the same cases: what matters here is which runs the message is about.
    assert called(monkeypatch, "merge", "last", "runs/old", "--output", "whole") == 2
    err = capsys.readouterr().err
    assert "the newest run: runs/new" in err
    assert "runs/old" in err


def test_the_last_search_is_no_run(there: Path, monkeypatch, capsys):
    assert called(monkeypatch, "bisect", "--resume", "last") == 2
    assert "there is no search in runs/" in capsys.readouterr().err
    (there / "runs" / "hunt").mkdir()
    (there / "runs" / "hunt" / "bisect.json").write_text("{}")
    assert called(monkeypatch, "bisect", "--resume", "last") != 0
    assert "the newest search: runs/hunt" in capsys.readouterr().err


def test_a_folder_that_is_called_last_has_another_name(there: Path, monkeypatch, capsys):
    write_run(there / "last", run="last")
    assert called(monkeypatch, "report", "./last") == 0
    assert "the newest run" not in capsys.readouterr().err
    assert called(monkeypatch, "report", "last") == 0
    assert "the newest run: runs/new" in capsys.readouterr().err


def test_without_a_run_there_is_no_last(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in (("report",), ("export", "--format", "csv"), ("comment",), ("trust",), ("run", "--resume")):
        assert called(monkeypatch, *words, runs.LAST) == 2
        assert "there is no run in runs/" in capsys.readouterr().err
