"""Two runs are compared ratio by ratio."""

import json
from pathlib import Path

import pytest

from tests.support.commands import called
from tests.support.small_run import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_two_runs_are_compared_by_their_ratios(monkeypatch, capsys, run: Path):
    assert called(monkeypatch, "compare", str(run), str(run)) == 0
    assert "2 ratios in both: 2 same." in capsys.readouterr().out
    assert called(monkeypatch, "compare", str(run), str(run), "--format", "json", "--fail-on", "slower") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "tfcompare.changes/1"
