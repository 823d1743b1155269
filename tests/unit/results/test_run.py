"""A run as an object, as a notebook uses it: the documented example runs as it stands on its page."""

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pyarrow as pa
import pytest

import tfcompare
from orchestrator import contract
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.model import ArmResult, Comparison, Manifest, Plan
from orchestrator.results import tables
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run import Run, load_run
from orchestrator.results.run_folder import RunFolder
from tests.conftest import ROOT
from tests.support.builders import case, plan, rows, run_folder, target, write_stream
from tests.support.export_runs import EAGER, MID, OLD, ROUNDS, VERSIONS, everything

PAGE = (ROOT / "docs" / "library.md").read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return everything(tmp_path_factory.mktemp("library") / "runs" / "first")


def test_the_documented_example_runs_as_it_stands(
    made: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    source = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    monkeypatch.chdir(made.path.parents[1])
    known: dict[str, object] = {}
    exec(compile(source, "docs/library.md", "exec"), known)
    told = capsys.readouterr().out
    assert f"{VERSIONS} 0.05 A CPU" in told
    assert f"{EAGER.label} in {MID}: 4.00x (3.98-4.01)" in told
    assert "power[style=jit] 1.14.0 refused no jit switch before TensorFlow 2.1" in told
    assert isinstance(known["comparisons"], pa.Table)
    assert known["of_bursts"]["phase"].unique().tolist() == ["burst"]
    assert len(known["replicates"]) == 12 * len(ROUNDS)


def test_every_column_of_every_table_is_documented():
    columns = {*tables.ARM.names, *tables.COMPARISON.names, *tables.REPLICATE.names, *contract.arrow_schema(pa).names}
    assert {name for name in columns if f"`{name}`" not in PAGE} == set()
    assert {name for name in tables.TABLES if f"`{name}`" not in PAGE} == set()


def test_every_public_part_of_a_run_is_documented(made: RunFolder):
    public = {name.partition("(")[0] for name in re.findall(r"^\| `(\w+)(?:\(\w+\))?` \|", PAGE, re.MULTILINE)}
    assert public == {name for name in dir(load_run(made.path)) if not name.startswith("_")}


def test_a_run_is_typed_objects_judged_as_in_every_report(made: RunFolder):
    run = load_run(made.path)
    assert (type(run.plan), type(run.manifest)) == (Plan, Manifest)
    assert {type(one) for one in run.arms} == {ArmResult}
    assert {type(one) for one in run.comparisons} == {Comparison}
    assert run.evaluation == judge_run(made)
    assert run.path == made.path


def test_a_path_may_be_a_text(made: RunFolder):
    assert load_run(str(made.path)) == load_run(made.path)


def test_replicates_of_the_pilot_and_of_rounds_redone_do_not_count(made: RunFolder):
    run = load_run(made.path)
    eager = [one for one in run.replicates if (one.case, one.target) == (EAGER.label, OLD)]
    assert [one.round for one in sorted(eager, key=lambda one: one.round)] == list(ROUNDS)
    assert all(9.9e6 < one.time_ns < 10.1e6 for one in eager)


def test_a_run_is_frozen(made: RunFolder):
    run = load_run(made.path)
    with pytest.raises(FrozenInstanceError):
        run.path = Path("elsewhere")


@pytest.mark.parametrize("table", tables.TABLES)
def test_every_table_is_one_of_arrow_and_of_pandas(made: RunFolder, table: str):
    run = load_run(made.path)
    arrow, frame = run.to_arrow(table), run.to_pandas(table)
    assert arrow.num_rows == len(frame) > 0
    assert arrow.column_names == list(frame.columns)


def test_calls_are_what_is_given_unasked(made: RunFolder):
    run = load_run(made.path)
    assert run.to_arrow().equals(run.to_arrow("calls"))


def test_an_unknown_table_is_wrong_usage(made: RunFolder):
    with pytest.raises(UsageError, match=r"no table 'call' .did you mean calls"):
        load_run(made.path).to_arrow("call")


def test_what_needs_every_call_is_given_each_stream_while_it_is_read(made: RunFolder):
    given: list[pa.Table] = []
    load_run(made.path, also=given.append)
    assert [set(table["target"].to_pylist()) for table in given] == [{version} for version in sorted(VERSIONS)]
    assert all(contract.PILOT_ROUND in table["round"].to_pylist() for table in given)


def test_a_run_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path):
    folder = run_folder(tmp_path / "run", plan([case()]))
    write_stream(folder.worker_output.stream(target("1.0.0"), 1), [rows(case(), "1.0.0")])
    run = load_run(folder.path)
    assert [one.target for one in run.replicates] == ["1.0.0"]
    assert run.warnings == ("the run was cut short; what it measured is here",)


def test_broken_streams_stand_first_among_the_warnings(tmp_path: Path):
    folder = run_folder(tmp_path / "run", plan([case()]))
    (folder.settled / "1.0.0-1.arrow").write_bytes(b"no stream")
    run = load_run(folder.path)
    assert "is not an Arrow stream" in run.warnings[0]
    assert run.warnings[1:] == run.evaluation.warnings
    assert run.replicates == ()


def test_what_is_no_run_is_said(tmp_path: Path):
    with pytest.raises(UsageError, match="holds no run"):
        load_run(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(ContractBroken, match="is not what this tfcompare writes") as told:
        load_run(tmp_path)
    assert len(str(told.value).splitlines()) == 1
    assert "errors.pydantic.dev" not in str(told.value)


def test_the_package_gives_what_programs_need_and_nothing_by_accident():
    assert sorted(tfcompare.__all__) == ["Run", "compare_targets", "load_run"]
    assert issubclass(tfcompare.Run, Run)
    with pytest.raises(AttributeError, match="module 'tfcompare' has no attribute 'load_runs'"):
        tfcompare.load_runs  # noqa: B018
