"""csv and parquet, opened by what people open them with."""

import csv
import io
from pathlib import Path

import duckdb
import pandas
import pyarrow.parquet
import pytest

from orchestrator import contract
from orchestrator.exports import export_run
from orchestrator.exports.csv import render
from orchestrator.results.run import Run
from orchestrator.results.tables import TABLES
from tests.support.builders import case, evaluation, plan, unmeasured
from tests.support.export_runs import EAGER, MID, OLD, ROUNDS, VERSIONS, of_scene


def ask(question: str, path: Path) -> list[tuple]:
    with duckdb.connect() as connection:
        return connection.execute(question.replace("FILE", f"'{path}'")).fetchall()


@pytest.mark.parametrize("table", TABLES)
def test_csv_holds_what_the_table_holds_and_nothing_where_that_is_unknown(run: Run, table: str):
    found = list(csv.DictReader(io.StringIO(render(run, table))))
    expected = run.to_arrow(table).to_pylist()
    assert len(found) == len(expected)
    for got, wanted in zip(found, expected, strict=True):
        assert got.keys() == wanted.keys()
        for name, value in wanted.items():
            if value is None:
                assert got[name] == ""
            elif isinstance(value, float):
                assert float(got[name]) == value
            else:
                assert got[name] == str(value).replace("True", "true").replace("False", "false")


def test_csv_is_of_arms_unless_another_table_is_named(run: Run):
    assert export_run(run, "csv").text == render(run, "arms")
    assert export_run(run, "csv", "comparisons").text == render(run, "comparisons")


def test_duckdb_and_pandas_read_csv_alike(run: Run, tmp_path: Path):
    (path,) = export_run(run, "csv", "comparisons", tmp_path / "comparisons.csv").files
    frame = pandas.read_csv(path)
    slower = frame[(frame["verdict"] == "slower") & (frame["param_style"] == "eager")]
    assert slower["candidate"].tolist() == [MID]
    assert slower["ratio"].iloc[0] == pytest.approx(4.0, rel=0.01)
    assert ask("select candidate, ratio from FILE where verdict = 'slower' and param_style = 'eager'", path) == [
        (MID, slower["ratio"].iloc[0])
    ]


def test_no_cell_of_csv_is_a_formula_to_a_spreadsheet():
    names = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "plain")
    cases = [case(name, value=name) for name in names]
    arms = tuple(unmeasured(one, OLD, "died", one.workload) for one in cases)
    text = render(of_scene(evaluation(plan=plan(cases, (OLD,)), arms=arms, comparisons=())), "arms")
    found = list(csv.reader(io.StringIO(text)))
    cells = [cell for row in found for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r＝＋－＠") and cell]
    assert [row[0] for row in found[1:]] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "\\t=1", "\\r=1", "'＝1", "plain"]


def test_negative_numbers_stay_numbers(run: Run, tmp_path: Path):
    (path,) = export_run(run, "csv", "comparisons", tmp_path / "comparisons.csv").files
    worst = run.to_pandas("comparisons")["seed_percent"].min()
    assert worst < 0
    assert pandas.read_csv(path)["seed_percent"].min() == worst


def test_parquet_holds_every_call_that_counts(run: Run, tmp_path: Path):
    (path,) = export_run(run, "parquet", output=tmp_path / "calls.parquet").files
    assert ask("select target, count(distinct replicate) from FILE group by 1 order by 1", path) == [
        (OLD, 4 * len(ROUNDS)), (MID, 4 * len(ROUNDS)), ("2.13.0", 4 * len(ROUNDS)),
    ]  # fmt: skip
    assert ask("select count(*) from FILE where round = 0", path) == [(0,)]
    # What a verdict is made of can be made again: the bursts of each replicate.
    bursts = ask(
        "select replicate, ln(avg(wall_ns / steps)) from FILE where phase = 'burst' "
        f"and target = '{OLD}' and \"case\" = '{EAGER.label}' group by replicate, burst order by replicate, burst",
        path,
    )
    own = [one for one in run.replicates if (one.case, one.target) == (EAGER.label, OLD)]
    expected = [(one.number, burst) for one in sorted(own, key=lambda one: one.number) for burst in one.bursts]
    assert bursts == [pytest.approx(each) for each in expected]


@pytest.mark.parametrize("table", TABLES)
def test_pandas_reads_the_same_table_from_parquet(run: Run, tmp_path: Path, table: str):
    (path,) = export_run(run, "parquet", table, tmp_path / f"{table}.parquet").files
    expected = run.to_pandas(table)
    found = pandas.read_parquet(path)
    assert list(found.columns) == list(expected.columns)
    assert found.astype(object).where(found.notna(), None).to_dict("records") == expected.astype(object).where(
        expected.notna(), None
    ).to_dict("records")


def test_parquet_says_where_it_comes_from_and_is_compressed(run: Run, tmp_path: Path):
    for table in ("calls", "arms"):
        (path,) = export_run(run, "parquet", table, tmp_path / table).files
        with pyarrow.parquet.ParquetFile(path) as file:
            metadata = file.schema_arrow.metadata
            assert metadata[b"tfcompare.run"] == run.plan.run.encode()
            assert metadata[b"tfcompare.tool"] == run.manifest.tool.encode()
            assert metadata[b"tfcompare.contract"] == contract.FINGERPRINT.encode()
            assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_calls_are_written_stream_by_stream(run: Run, tmp_path: Path):
    """Or all calls of a large run would stand in memory together."""
    (path,) = export_run(run, "parquet", output=tmp_path / "calls.parquet").files
    with pyarrow.parquet.ParquetFile(path) as file:
        assert file.num_row_groups == len(VERSIONS)
        for place, version in enumerate(sorted(VERSIONS)):
            assert set(file.read_row_group(place)["target"].to_pylist()) == {version}
