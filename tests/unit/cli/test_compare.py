"""Two runs are compared ratio by ratio."""

import json
from pathlib import Path

import pytest

from tests.support.builders import NEW, OLD
from tests.support.commands import called
from tests.support.small_run import SAME, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


@pytest.fixture
def later(tmp_path: Path) -> Path:
    return write_run(tmp_path / "later", run="later")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_two_runs_are_compared_by_their_ratios(monkeypatch, capsys, run: Path, later: Path):
    assert called(monkeypatch, "compare", str(run), str(later)) == 0
    assert "4 ratios in both: 4 same." in capsys.readouterr().out
    assert called(monkeypatch, "compare", str(run), str(later), "--format", "json", "--fail-on", "slower") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "tfcompare.changes/1"


def test_what_a_comparison_fails_on_is_what_it_is_asked_for(monkeypatch, capsys, run: Path, tmp_path: Path):
    lost = write_run(tmp_path / "lost", run="lost")
    (lost / "streams" / f"{NEW}-0.arrow").unlink()
    for outcomes, code in (("inconclusive", 1), ("slower", 3), ("slower,inconclusive", 3), ("slower,died", 3)):
        assert called(monkeypatch, "compare", str(run), str(lost), "--fail-on", outcomes) == code
        stderr = capsys.readouterr().err
        assert ("--fail-on slower had nothing to judge: none of 2 comparisons" in stderr) == (code == 3)
        assert (f"(--fail-on {outcomes})" in stderr) == ("inconclusive" in outcomes)


def test_a_comparison_that_only_one_run_has_is_inconclusive(monkeypatch, capsys, run: Path, tmp_path: Path):
    smaller = write_run(tmp_path / "smaller", run="smaller", cases=(SAME,))
    assert called(monkeypatch, "compare", str(run), str(smaller), "--fail-on", "slower") == 0
    for outcome, told in (
        ("inconclusive", "1 inconclusive of 2"),
        ("memory:inconclusive", "1 memory:inconclusive of 2"),
    ):
        assert called(monkeypatch, "compare", str(run), str(smaller), "--fail-on", outcome) == 1
        assert f"{told} comparisons" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ("build:slower", "run does not compare build; measure it with --metric memory,build"),
        ("output:differs", "`compare` compares no results; leave output out"),
    ],
)
def test_what_two_runs_do_not_compare_cannot_be_asked_for(
    monkeypatch, capsys, run: Path, later: Path, gate: str, told: str
):
    assert called(monkeypatch, "compare", str(run), str(later), "--fail-on", gate) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert not out


def test_more_memory_is_nothing_slower(monkeypatch, capsys, run: Path, tmp_path: Path):
    larger = write_run(tmp_path / "larger", memory_kb=1500, run="larger")
    assert called(monkeypatch, "compare", str(run), str(larger), "--fail-on", "slower") == 0
    told = capsys.readouterr().out
    assert "4 ratios in both: 2 more, 2 same." in told
    assert f"{NEW} against {OLD}, peak memory" in told
    assert called(monkeypatch, "compare", str(run), str(larger), "--fail-on", "memory:more>20%") == 1
    assert "2 memory:more>20% of 2 comparisons" in capsys.readouterr().err


def test_a_page_about_two_runs_goes_into_the_later_run_or_where_it_is_told(monkeypatch, capsys, run: Path, later: Path):
    assert called(monkeypatch, "compare", str(run), str(later), "--format", "html") == 0
    assert f"written: {later / 'changes.html'}" in capsys.readouterr().err
    assert called(monkeypatch, "compare", str(run), str(later), "--format", "html", "-o", str(run / "x.html")) == 0
    page = (run / "x.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "Which ratios changed" in page


def test_a_run_and_itself_are_refused(monkeypatch, capsys, run: Path):
    assert called(monkeypatch, "compare", str(run), str(run)) == 2
    assert "are the same run" in capsys.readouterr().err


def test_two_versions_are_told_what_compares_them(monkeypatch, capsys, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "compare", "2.0", "2.13") == 2
    assert "tfcompare run --versions 2.0,2.13" in capsys.readouterr().err
