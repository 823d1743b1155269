"""What docs/architecture.md promises: an engine, a report and an export are one file and one line each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.engines import ENGINES, EngineInfo
from orchestrator.exports import EXPORTS, Export
from orchestrator.reports import REPORTS, Report
from orchestrator.results import tables
from tests.support.commands import called
from tests.unit.cli.added.engine import StageEngine

ADDED = "tests.unit.cli.added"


def test_one_file_and_one_line_add_an_engine_a_report_and_an_export(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setitem(ENGINES, "stage", EngineInfo(title="a stage", make=StageEngine, isolation="process"))
    monkeypatch.setitem(
        REPORTS, "count", Report(name="count", about="how many", module=f"{ADDED}.report", json=f"{ADDED}.report")
    )
    monkeypatch.setitem(EXPORTS, "labels", Export(name="labels", module=f"{ADDED}.export"))
    run = str(tmp_path / "run")

    flags = ("--versions", "1.14,2.0", "--case", "power[style=eager]", "--rounds", "2", "--output", run)
    assert called(monkeypatch, "run", "--engine", "stage", *flags) == 0
    assert "engine: a stage" in capsys.readouterr().err
    assert called(monkeypatch, "report", run, "--table", "count") == 0
    assert "2 arms in stage" in capsys.readouterr().out
    assert called(monkeypatch, "report", run, "--table", "count", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"arms": 2}
    assert called(monkeypatch, "export", run, "--format", "labels") == 0
    assert capsys.readouterr().out == "power[style=eager]\n"

    assert called(monkeypatch, "run", "--engine", "stgae", *flags) == 2
    assert "did you mean stage?" in capsys.readouterr().err
    assert called(monkeypatch, "report", run, "--table", "cuont") == 2
    assert "did you mean count?" in capsys.readouterr().err
    assert called(monkeypatch, "export", run, "--format", "lables") == 2
    assert "did you mean labels?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("report", [f"{report.name}: {report.about}" for report in REPORTS.values()]),
        ("export", [*EXPORTS, *tables.TABLES]),
    ],
)
def test_the_help_names_everything_that_is_registered(monkeypatch, capsys, command: str, names: list[str]):
    monkeypatch.setenv("COLUMNS", "400")
    assert called(monkeypatch, command, "--help") == 0
    told = capsys.readouterr().out
    assert [name for name in names if name not in told] == []


def test_names_are_known_without_what_draws_and_writes():
    """The help of every command needs the names; numpy, pyarrow and rich take a second."""
    program = "import sys, orchestrator.reports, orchestrator.exports; print(*{*sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pyarrow", "pydantic", "rich", "scipy"} & set(loaded)
