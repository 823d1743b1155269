"""`tfcompare init` writes a workload that is one, and never over another."""

import ast
from pathlib import Path

from orchestrator.catalog.workloads import read_workload
from tests.support.commands import called


def test_it_is_a_workload_for_every_python(monkeypatch, capsys, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "init", "my code") == 0
    out = capsys.readouterr().out
    assert "--workload-folder 'my code'" in out
    path = tmp_path / "my code" / "training.py"
    assert read_workload(path, builtin=False).params == {"units": ("32", "256")}
    ast.parse(path.read_text(), feature_version=(3, 6))
    assert (
        called(
            monkeypatch,
            "run",
            "--versions",
            "2.13,2.16",
            "--engine",
            "venv",
            "--dry-run",
            "--workload-folder",
            "my code",
        )
        == 0
    )


def test_what_is_there_stays(monkeypatch, capsys, tmp_path: Path):
    (tmp_path / "training.py").write_text("mine")
    assert called(monkeypatch, "init", str(tmp_path)) == 2
    assert "training.py exists already; name another folder" in capsys.readouterr().err
    assert (tmp_path / "training.py").read_text() == "mine"
