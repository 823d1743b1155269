"""Names that fight back go through every format, and the consumers read all of it."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import junitparser
import pandas
import pyperf
import pytest
from asv.results import iter_results

from orchestrator.exports import EXPORTS, export_run
from orchestrator.results.run import load_run
from tests.support import scenes
from tests.support.builders import case, plan, rows, run_folder, write_stream
from tests.support.export_runs import OLD, POISONS, ROUNDS, hostile_folder, of_scene

TEXTS = [name for name, entry in EXPORTS.items() if not entry.default_name]
FILES = [name for name, entry in EXPORTS.items() if entry.default_name]

SCENES = {"everything": scenes.everything, "hostile": scenes.hostile, "exploratory": scenes.exploratory}


@pytest.fixture(params=POISONS.values(), ids=POISONS)
def poison(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_scene_is_a_text_in_every_format(scene, name: str):
    text = export_run(of_scene(scene()), name).text
    assert text
    assert all(sign.isprintable() or sign == "\n" for sign in text)


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_moves_a_cursor_or_turns_the_reading_direction(tmp_path: Path, poison: str, name: str):
    run = load_run(hostile_folder(tmp_path / "run", poison).path)
    for one in (run, of_scene(scenes.poisoned(poison))):
        text = export_run(one, name).text
        assert text
        assert all(sign.isprintable() or sign == "\n" for sign in text)


def test_xml_stays_xml(tmp_path: Path, poison: str):
    run = of_scene(scenes.poisoned(poison))
    (path,) = export_run(run, "junit", output=tmp_path / "out.xml").files
    root = ElementTree.parse(path).getroot()
    assert {element.tag for element in root.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped", "system-out",
    }  # fmt: skip
    found = [test for suite in junitparser.JUnitXml.fromfile(str(path)) for test in suite]
    assert len(found) == 3
    assert {type(test.result[0]) for test in found} == {junitparser.Skipped, junitparser.Error}


@pytest.mark.parametrize("table", ["arms", "comparisons"])
def test_csv_keeps_its_columns_and_rows(poison: str, table: str):
    run = of_scene(scenes.poisoned(poison))
    header, *lines = csv.reader(io.StringIO(export_run(run, "csv", table).text or ""))
    assert len(lines) == run.to_arrow(table).num_rows
    assert {len(line) for line in lines} == {len(header)}


@pytest.mark.parametrize("name", ["bencher", "github-benchmark", "json"])
def test_json_stays_json(poison: str, name: str):
    text = export_run(of_scene(scenes.poisoned(poison)), name).text
    assert text
    assert json.loads(text)


def test_parquet_keeps_the_very_names(tmp_path: Path, poison: str):
    run = load_run(hostile_folder(tmp_path / "run", poison).path)
    (path,) = export_run(run, "parquet").files
    assert set(pandas.read_parquet(path)["case"]) == {run.arms[0].case.label}


def test_pyperf_reads_and_shows_them(tmp_path: Path, poison: str):
    run = load_run(hostile_folder(tmp_path / "run", poison).path)
    files = export_run(run, "pyperf").files
    assert len(files) == 2
    for path in files:
        (benchmark,) = pyperf.BenchmarkSuite.load(str(path)).get_benchmarks()
        assert benchmark.get_nrun() == len(ROUNDS)
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", "compare_to", *map(str, files)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"3.00x slower" in done.stdout
    assert b"\x1b" not in done.stdout


def test_asv_reads_them(tmp_path: Path, poison: str):
    run = load_run(hostile_folder(tmp_path / "run", poison).path)
    files = export_run(run, "asv").files
    assert all((run.path / "asv") in path.parents for path in files)
    found = list(iter_results(str(run.path / "asv")))
    assert len(found) == 2
    for one in found:
        (name,) = one.get_all_result_keys()
        listed = json.loads((run.path / "asv" / "benchmarks.json").read_text())[name]
        values = one.get_result_value(name, listed["params"])
        assert [value is None for value in values] == [False, True]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("version", ["../../evil", "/evil", "..", "a/b", "é\x00"])
def test_no_version_leads_out_of_the_folder(tmp_path: Path, name: str, version: str):
    """A run folder may come from anywhere."""
    only = case("only")
    folder = run_folder(tmp_path / "deep" / "run", plan([only], (OLD, version)))
    for number, one in enumerate((OLD, version), 1):
        write_stream(folder.settled / f"{number}.arrow", [rows(only, one, replicate=number)])
    output = tmp_path / "deep" / "out"
    files = export_run(load_run(folder.path), name, output=output).files
    assert files
    assert all(path.resolve().is_relative_to(output) and path.is_file() for path in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]
    assert sorted(path.name for path in output.parent.iterdir()) == ["out", "run"]
