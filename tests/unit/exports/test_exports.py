"""The registry: which formats there are, what may be asked of them, and where they go."""

from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.exports import EXPORTS, check_export, export_run, parquet
from orchestrator.results.run import Run, load_run
from tests.conftest import ROOT
from tests.support.export_runs import everything

TEXTS = [name for name, entry in EXPORTS.items() if not entry.default_name]
FILES = {"parquet": "calls.parquet", "pyperf": "pyperf", "asv": "asv"}


def test_the_run_that_these_tests_export_has_one_of_everything(run: Run):
    assert {comparison.verdict for comparison in run.comparisons} == {"faster", "slower", "same", "inconclusive"}
    assert {arm.outcome for arm in run.arms} == {"measured", "refused", "died"}
    assert {one.round for one in run.replicates} == set(range(1, 9))
    assert run.evaluation.broken == ()


def test_every_format_is_a_text_or_files_with_a_usual_name():
    assert TEXTS == ["csv", "json", "markdown", "junit", "bencher", "github-benchmark", "openmetrics"]
    assert EXPORTS.keys() == {*TEXTS, *FILES}


def test_every_format_has_its_section_in_the_docs():
    page = (ROOT / "docs" / "exports.md").read_text()
    for name in EXPORTS:
        assert f"[`{name}`](#" in page
        assert f"--format {name}" in page
    assert "Do not compute verdicts from an export" in page


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_handed_back_or_written_where_it_is_wanted(run: Run, tmp_path: Path, name: str):
    made = export_run(run, name)
    assert made.files == ()
    assert made.text
    assert made.text == made.text.rstrip("\n")
    written = export_run(run, name, output=tmp_path / "out")
    assert (written.text, written.files) == (None, (tmp_path / "out",))
    assert (tmp_path / "out").read_text(encoding="utf-8") == made.text + "\n"


@pytest.mark.parametrize("name", FILES)
def test_files_go_into_the_run_folder_unless_told_otherwise(tmp_path: Path, name: str):
    folder = everything(tmp_path / "run")
    before = load_run(folder.path)
    made = export_run(before, name)
    assert made.text is None
    assert made.files
    inside = folder.path / FILES[name]
    assert all(path.is_file() and (path == inside or inside in path.parents) for path in made.files)
    assert load_run(folder.path) == before


def test_another_table_has_its_name_in_the_run_folder(tmp_path: Path):
    folder = everything(tmp_path / "run")
    assert export_run(load_run(folder.path), "parquet", "arms").files == (folder.path / "arms.parquet",)


BAD = {
    "an unknown format": (("xml",), "unknown format 'xml'.*choose from csv"),
    "a near miss": (("pyprof",), "did you mean pyperf"),
    "a table of what has none": (("junit", "arms"), "--table goes with --format csv or parquet"),
    "an unknown table": (("csv", "call"), "no table 'call' .did you mean calls"),
}


@pytest.mark.parametrize(("asked", "words"), BAD.values(), ids=BAD)
def test_what_cannot_be_asked_for_is_said_before_the_run_is_read(run: Run, asked: tuple[str, ...], words: str):
    with pytest.raises(UsageError, match=words):
        check_export(*asked)
    with pytest.raises(UsageError, match=words):
        export_run(run, *asked)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_place_that_cannot_be_written_is_wrong_usage(run: Run, tmp_path: Path, name: str):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UsageError, match=r"cannot write .*file/out.*--output"):
        export_run(run, name, output=tmp_path / "file" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_a_folder_where_a_file_is_wanted_is_wrong_usage(run: Run, tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="--output"):
        export_run(run, name, output=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["pyperf", "asv"])
def test_a_folder_that_is_not_empty_is_left_as_it_is(run: Run, tmp_path: Path, name: str):
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(UsageError, match="is not empty; remove it, or name another folder with --output"):
        export_run(run, name, output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_is_replaced_only_once_it_is_whole(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Half a table under the name of a whole one would be believed."""
    path = tmp_path / "calls.parquet"
    path.write_text("older")

    calls = run.to_arrow("calls")

    def full(*asked: object):
        yield calls
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.tables, "streams_of_calls", full)
    with pytest.raises(UsageError, match="No space left on device"):
        export_run(run, "parquet", output=path)
    assert path.read_text() == "older"
    assert [one.name for one in tmp_path.iterdir()] == ["calls.parquet"]
