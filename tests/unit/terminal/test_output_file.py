"""An output that cannot be written is refused before the work, in one sentence, and nothing is left behind."""

from pathlib import Path

import pytest

from orchestrator.cli import show
from orchestrator.errors import UsageError
from orchestrator.reports import Page
from orchestrator.terminal import output_file
from tests.support.commands import called
from tests.support.small_run import write_run

UNWRITABLE = {
    "a folder that does not exist": ("nope/x.html", "No such file or directory"),
    "a file as a folder": ("file/x.html", "Not a directory"),
    "a folder": ("folder", "it is a folder"),
    "a place where nobody writes": ("/proc/x.html", "No such file or directory"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(("path", "why"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_cannot_be_written_is_wrong_usage(folder, path: str, why: str):
    with pytest.raises(UsageError) as error:
        output_file.check_output(Path(path))
    assert str(error.value) == f"cannot write {path}: {why}; name another place with --output"


@pytest.mark.parametrize("path", ["new", "file", "/dev/null", "/dev/full"])
def test_a_check_changes_nothing(folder, path: str):
    before = sorted(folder.iterdir())
    output_file.check_output(Path(path))
    assert sorted(folder.iterdir()) == before
    assert (folder / "file").read_text() == "kept"


@pytest.mark.parametrize("flags", [("--output", "/proc/x.html"), ()])
def test_nothing_is_drawn_for_a_page_that_cannot_be_written(monkeypatch, capsys, run, flags):
    def draw(path: Path):
        pytest.fail("the page was drawn")

    monkeypatch.setitem(show.PAGES, "html", Page(draw, "report.html"))
    if not flags:
        (run / "report.html").mkdir()
    assert called(monkeypatch, "report", str(run), "--format", "html", *flags) == 2
    said = capsys.readouterr().err
    assert said.startswith("tfcompare: cannot write ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_nothing_is_read_for_an_export_that_cannot_be_written(monkeypatch, capsys, tmp_path, to: str):
    assert called(monkeypatch, "export", str(tmp_path), "--format", to, "--output", "/proc/x") == 2
    assert "cannot write /proc/x" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["pyperf", "asv"])
def test_a_folder_that_cannot_be_made_is_wrong_usage(monkeypatch, capsys, run, to: str):
    assert called(monkeypatch, "export", str(run), "--format", to, "--output", "/proc/x") == 2
    assert "cannot write /proc/x: No such file or directory" in capsys.readouterr().err


def test_a_disk_that_fills_up_while_a_report_is_written_is_wrong_usage(monkeypatch, capsys, run):
    assert called(monkeypatch, "report", str(run), "--output", "/dev/full") == 2
    assert "cannot write /dev/full: No space left on device" in capsys.readouterr().err
