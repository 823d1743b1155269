"""Commands on runs that are there: what they print and write, and which exit code a run with holes in it has."""

import json
import os
from pathlib import Path

import pytest

from orchestrator import reports
from orchestrator.cli import options, report
from orchestrator.cli.history import query
from orchestrator.history import sql_output
from orchestrator.results import tables
from tests.support.builders import NEW
from tests.support.commands import called
from tests.support.small_run import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


@pytest.fixture
def broken(run: Path) -> Path:
    """The same, with one stream that is none: the other version's figures are still there."""
    (run / "streams" / f"{NEW}-0.arrow").write_bytes(b"hello")
    return run


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_a_report_shows_only_what_is_asked_for(monkeypatch, capsys, run: Path):
    assert called(monkeypatch, "report", str(run), "--only", "slower", "--sort", "-ratio") == 0
    text = capsys.readouterr().out
    assert "--only slower: 1 of 2 cases" in text
    assert "▲ slower" in text
    assert "\npredict" not in text


# A run of times, memory and nothing else: `slower` is true of it, and nothing further is known.
GATES = {
    "slower": (1, "1 slower of 2 comparisons"),
    "slower>500%": (0, ""),
    "inconclusive": (0, ""),
    "memory:more": (0, ""),
    "build:slower": (2, "does not compare build; name it: --metric memory,build"),
    "output:differs": (2, "does not compare output; name it: --metric memory,output"),
    "first:slower": (2, "does not compare first"),
    "leak:more": (2, "does not compare leak"),
    "gpu_memory:more": (2, "does not compare gpu_memory"),
    "p99:slower": (2, "does not compare p99"),
    "inconclusive,traces:more": (2, "does not compare traces"),
    "leak:inconclusive": (2, "does not compare leak"),
    "output:inconclusive": (2, "does not compare output"),
    "died": (0, ""),
}


@pytest.mark.parametrize(("gates", "code", "words"), [(gates, *told) for gates, told in GATES.items()], ids=GATES)
def test_a_gate_of_a_report_is_judged_or_refused(monkeypatch, capsys, run: Path, gates: str, code: int, words: str):
    assert called(monkeypatch, "report", str(run), "--fail-on", gates) == code
    out, err = capsys.readouterr()
    assert words in err
    assert ("slower" in out) == (code != 2)


def test_a_gate_of_what_a_run_has_no_figure_of_has_nothing_to_judge(monkeypatch, capsys, run: Path):
    asked = ("report", str(run), "--metric", "p99,output,build", "--fail-on")
    assert called(monkeypatch, *asked, "build:slower") == 0
    capsys.readouterr()
    for gate, code in (("p99:slower", 3), ("output:differs", 3), ("p99:inconclusive", 1), ("output:inconclusive", 1)):
        assert called(monkeypatch, *asked, gate) == code
        assert f"{gate} had nothing to judge" in capsys.readouterr().err or code == 1


def test_a_version_that_was_not_measured_leaves_nothing_to_judge(monkeypatch, capsys, run: Path):
    (run / "streams" / f"{NEW}-0.arrow").unlink()
    codes = {"slower": 3, "memory:more": 3, "inconclusive": 1, "memory:inconclusive": 1, "slower,died": 3}
    for gates, code in codes.items():
        assert called(monkeypatch, "report", str(run), "--fail-on", gates) == code, gates
        assert ("none of 2 comparisons could be made: its results are lost" in capsys.readouterr().err) == (code == 3)


def test_what_has_no_verdicts_has_no_gates(monkeypatch, capsys, run: Path):
    assert called(monkeypatch, "report", str(run.parent), "--fail-on", "slower") == 2
    assert "contains several runs: name one" in capsys.readouterr().err


def test_a_broken_run_ends_with_its_own_code_before_any_gate(monkeypatch, capsys, broken: Path):
    assert called(monkeypatch, "report", str(broken), "--fail-on", "slower,inconclusive") == 7


def test_without_a_name_the_newest_run_is_shown(monkeypatch, capsys, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert called(monkeypatch, "report") == 2
    assert "there is no run in runs/" in capsys.readouterr().err
    for age, name in enumerate(("new", "old")):
        path = write_run(tmp_path / "runs" / name)
        os.utime(path / "plan.json", (10_000 - age, 10_000 - age))
    assert called(monkeypatch, "report") == 0
    streams = capsys.readouterr()
    assert "▲ slower" in streams.out
    assert "the newest run: runs/new" in streams.err


def test_a_folder_of_runs_is_listed_newest_first_and_a_damaged_one_too(monkeypatch, capsys, tmp_path: Path):
    for age, name in enumerate(("new", "old", "damaged")):
        path = write_run(tmp_path / name)
        (path / "plan.json").write_text("[]") if name == "damaged" else None
        os.utime(path / "plan.json", (10_000 - age, 10_000 - age))
    assert called(monkeypatch, "report", str(tmp_path), "--format", "json") == 0
    runs = json.loads(capsys.readouterr().out)
    assert [Path(each["path"]).name for each in runs] == ["new", "old", "damaged"]
    assert [each["cases"] for each in runs] == [2, 2, 0]
    assert called(monkeypatch, "report", str(tmp_path)) == 0
    listed = capsys.readouterr().out
    assert str(NEW) in listed
    assert "its plan.json cannot be read" in listed
    assert called(monkeypatch, "report", str(tmp_path), "--format", "html") == 2
    assert "contains several runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [("journal.jsonl", "it is not known which rounds were disturbed"), ("manifest.json", "manifest.json is missing")],
)
def test_a_file_that_is_missing_is_named(monkeypatch, capsys, run: Path, name: str, words: str):
    (run / name).unlink()
    assert called(monkeypatch, "report", str(run)) == 7
    assert words in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("text", ["", "{}", "[", '{"run": 1}', "null"])
def test_a_plan_that_is_damaged_or_foreign_is_one_line(monkeypatch, capsys, run: Path, text: str):
    (run / "plan.json").write_text(text)
    assert called(monkeypatch, "report", str(run)) == 7
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert f"{run / 'plan.json'} is not what this tfcompare writes" in err
    assert "pydantic" not in err


def test_a_report_goes_into_a_file_or_stays_on_stdout(monkeypatch, capsys, run: Path):
    assert called(monkeypatch, "report", str(run), "--output", str(run / "table.txt")) == 0
    streams = capsys.readouterr()
    assert streams.out == ""
    assert f"written: {run / 'table.txt'}" in streams.err
    assert "▲ slower" in (run / "table.txt").read_text()
    assert called(monkeypatch, "report", str(run), "--output", "-") == 0
    assert capsys.readouterr().out == (run / "table.txt").read_text()


def test_an_html_report_stands_in_the_run_unless_it_is_sent_elsewhere(monkeypatch, capsys, run: Path):
    assert called(monkeypatch, "report", str(run), "--format", "html") == 0
    streams = capsys.readouterr()
    assert (streams.out, f"written: {run / 'report.html'}" in streams.err) == ("", True)
    assert (run / "report.html").read_text().startswith("<!doctype html>")
    assert called(monkeypatch, "report", str(run), "--format", "html", "--output", "-") == 0
    assert capsys.readouterr().out == (run / "report.html").read_text()


@pytest.mark.parametrize("format", ["table", "json", "html"])
def test_a_broken_stream_ends_with_7_and_the_other_versions_are_reported(
    monkeypatch, capsys, broken: Path, format: str
):
    assert called(monkeypatch, "report", str(broken), "--format", format, "--output", "-") == 7
    streams = capsys.readouterr()
    assert "is not an Arrow stream" in streams.err
    if format == "json":
        answer = json.loads(streams.out)
        assert [arm["outcome"] for arm in answer["arms"]] == ["measured", "not measured", "measured", "not measured"]
        assert "is not an Arrow stream" in answer["warnings"][0]
    else:
        assert "10.0 ms" in streams.out
        assert "is not an Arrow stream" in streams.out.replace("\n", " ")


@pytest.mark.parametrize("to", ["csv", "json", "markdown", "junit", "bencher", "github-benchmark", "openmetrics"])
def test_an_export_is_a_text_on_stdout_or_in_a_file(monkeypatch, capsys, run: Path, to: str):
    assert called(monkeypatch, "export", str(run), "--format", to) == 0
    text = capsys.readouterr().out
    assert text.strip()
    assert called(monkeypatch, "export", str(run), "--format", to, "--output", str(run / "out")) == 0
    assert (run / "out").read_text().strip() == text.strip()


@pytest.mark.parametrize("width", ["80", "100", "200"])
def test_the_table_of_details_has_the_same_columns_at_every_width(monkeypatch, capsys, run: Path, width: str):
    monkeypatch.setenv("COLUMNS", width)
    assert called(monkeypatch, "report", str(run), "--table", "details") == 0
    header = next(line for line in capsys.readouterr().out.splitlines() if "verdict" in line and "target" in line)
    assert [word for word in header.split() if word.isalpha()] == ["target", "time", "ratio", "interval", "verdict"]


@pytest.mark.parametrize(("to", "written"), [("parquet", "calls.parquet"), ("pyperf", "pyperf"), ("asv", "asv")])
def test_an_export_of_files_goes_into_the_run_and_says_where(monkeypatch, capsys, run: Path, to: str, written: str):
    assert called(monkeypatch, "export", str(run), "--format", to) == 0
    assert (run / written).exists()
    streams = capsys.readouterr()
    assert streams.out == ""
    assert f"written: {run / written}" in streams.err


def test_a_broken_stream_is_exported_without_and_ends_with_7(monkeypatch, capsys, broken: Path):
    assert called(monkeypatch, "export", str(broken), "--format", "csv") == 7
    streams = capsys.readouterr()
    assert "measured" in streams.out
    assert "is not an Arrow stream" in streams.err


def test_the_choices_of_the_flags_are_what_is_registered():
    assert report.FLAT_TABLES == tables.TABLES
    assert options.REPORT_FORMATS == reports.FORMATS
    assert query.QUERY_FORMATS == sql_output.FORMATS


BAD_CALLS = {
    "an unknown kind": (["report", "--only", "slowr"], "did you mean slower?"),
    "an unknown order": (["report", "--sort", "tiem"], "did you mean time?"),
    "an order of no table": (["report", "--sort", "time", "--format", "json"], "--sort goes with --format table"),
    "a choice from no table": (["report", "--only", "same", "--table", "study"], "--only goes with --format table"),
    "a table in a page": (["report", "--format", "html", "--table", "study"], "--table goes with"),
    "an unknown page": (["report", "--format", "htm"], "did you mean html?"),
    "an unknown export": (["export", "--format", "cvs"], "did you mean csv?"),
    "a table of none": (["export", "--format", "junit", "--table", "arms"], "--table goes with"),
    "an unknown table": (["export", "--format", "csv", "--table", "arm"], "did you mean arms?"),
    "an unknown alarm": (["compare", ".", "--fail-on", "quicker"], "choose from slower, faster, inconclusive, died"),
    "an export for a report": (["report", "--format", "junit"], "`tfcompare export RUN --format junit` writes that"),
    "nowhere to write": (["report", "--output", "/none/where/x"], "cannot write /none/where/x"),
}


@pytest.mark.parametrize(("flags", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_says_what_to_write_instead(monkeypatch, capsys, run: Path, flags: list[str], words: str):
    command, *others = flags
    assert called(monkeypatch, command, str(run), *others) == 2
    streams = capsys.readouterr()
    assert words in streams.err
    assert streams.out == ""


@pytest.mark.parametrize("command", [["report"], ["export", "--format", "csv"], ["compare", "."]])
def test_what_is_no_run_is_wrong_usage(monkeypatch, capsys, tmp_path: Path, command: list[str]):
    assert called(monkeypatch, command[0], str(tmp_path), *command[1:]) == 2
    assert "holds no run" in capsys.readouterr().err
