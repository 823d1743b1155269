"""A run as flat tables: the same columns whatever was measured, null for what is unknown, and no row too many."""

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from orchestrator import contract
from orchestrator.model import Disturbed, Drift, Replicate
from orchestrator.results import tables
from orchestrator.results.run import load_run
from orchestrator.results.run_folder import RunFolder
from tests.support import scenes
from tests.support.builders import (
    MS,
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    comparison,
    ended,
    evaluation,
    finished,
    plan,
    rows,
    run_folder,
    unmeasured,
    version_pair,
    write_stream,
)

EAGER, FIT = case("power", style="eager"), case("train", loop="fit", model="small")
PARAMETERS = ["param_style", "param_loop", "param_model"]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Two cases in two versions: a pilot, three rounds, of which the first of one case was redone; one arm died."""
    folder = run_folder(tmp_path / "run", plan([EAGER, FIT]))
    batches = {OLD: [], NEW: []}
    number = 0
    for version, done in batches.items():
        for of, rounds in ((EAGER, (0, 1, 1, 2, 3)), (FIT, (0, 1, 2, 3) if version == OLD else ())):
            for place, one in enumerate(rounds):
                number += 1
                done.append(rows(of, version, round=one, replicate=number, bursts=(number * MS,) * 2))
                if of == EAGER and place == 1:
                    folder.record(Disturbed(case=of.label, round=1, replicates=(number,), cause="others", redone=True))
        write_stream(folder.settled / f"{version}-1.arrow", done)
    folder.record(ended(FIT, NEW, "died", replicate=99, reason="it broke"))
    folder.record(finished(how="", seconds=1.0))
    return folder


def test_arms_are_a_row_each_with_a_column_a_parameter():
    arms = tables.arms(
        evaluation(
            arms=(arm(EAGER, OLD, drift=Drift(rise=math.log(1.5))), unmeasured(FIT, NEW, "refused", "no such loop"))
        )
    )
    assert arms.column_names == ["workload", "case", *PARAMETERS, *tables.ARM.names]
    assert arms.schema.field("time_s").type == pa.float64()
    measured, refused = arms.to_pylist()
    assert (measured["workload"], measured["case"], measured["target"]) == ("power", "power[style=eager]", OLD)
    assert [measured[name] for name in PARAMETERS] == ["eager", None, None]
    assert [refused[name] for name in PARAMETERS] == [None, "fit", "small"]
    assert (measured["time_s"], measured["rounds"], measured["reason"]) == (0.01, 6, None)
    assert measured["drift"] == pytest.approx(0.5)
    assert (refused["outcome"], refused["reason"], refused["time_s"]) == ("refused", "no such loop", None)


def test_comparisons_are_a_row_each_and_those_inside_a_version_have_no_case():
    other = case("power", style="function")
    across, inside = version_pair(EAGER), case_pair(EAGER, other)
    found = comparison(across, 2.0, "slower"), comparison(inside, None, "inconclusive", "it broke")
    table = tables.comparisons(plan([EAGER]), found)
    assert table.column_names == ["workload", "case", "param_style", *tables.COMPARISON.names]
    first, second = table.to_pylist()
    assert (first["case"], first["target"], first["baseline"], first["candidate"]) == (EAGER.label, None, OLD, NEW)
    assert (first["ratio"], first["verdict"], first["reason"], first["exploratory"]) == (2.0, "slower", None, False)
    assert (second["case"], second["target"], second["param_style"]) == (None, NEW, None)
    assert (second["baseline"], second["candidate"]) == (EAGER.label, other.label)
    assert (second["ratio"], second["ci_low"], second["mde"]) == (None, None, None)


def test_replicates_are_those_that_count(run: RunFolder):
    found = load_run(run.path)
    table = tables.replicates(found.plan, found.replicates)
    assert table.column_names == ["workload", "case", *PARAMETERS, *tables.REPLICATE.names]
    counted = table.group_by(["case", "target"]).aggregate([("round", "list")]).to_pylist()
    assert {(one["case"], one["target"]): sorted(one["round_list"]) for one in counted} == {
        (EAGER.label, OLD): [1, 2, 3], (FIT.label, OLD): [1, 2, 3], (EAGER.label, NEW): [1, 2, 3],
    }  # fmt: skip
    first = table.to_pylist()[0]
    assert (first["round"], first["replicate"], first["time_ns"]) == (1, 3, 3 * MS)
    assert (first["build_ns"], first["first_ns"], first["second_ns"]) == (500 * MS, 50 * MS, 20 * MS)
    assert first["calls_ns"] == (50 + 20 + 10 + 2 * 3) * MS
    assert (first["rise"], first["traces"]) == (0.0, 1)


def test_every_field_of_a_replicate_has_a_column():
    """But for what the table of calls tells: its bursts, their percentiles and its position."""
    fields = {name if name != "number" else "replicate" for name in Replicate._fields}
    assert fields - {"case", "bursts", "cpu_bursts", "percentiles", "position"} == set(tables.REPLICATE.names)


def test_calls_are_every_row_of_the_replicates_that_count(run: RunFolder):
    found = load_run(run.path)
    table = tables.calls(run, found.replicates)
    assert table.schema.equals(contract.arrow_schema(pa), check_metadata=True)
    assert set(table["replicate"].to_pylist()) == {one.number for one in found.replicates}
    assert table.num_rows == len(found.replicates) * 6
    assert set(table["target"].to_pylist()) == {OLD, NEW}
    assert contract.PILOT_ROUND not in table["round"].to_pylist()


def test_the_means_of_bursts_of_the_calls_are_what_the_replicates_have(run: RunFolder):
    found = load_run(run.path)
    table = tables.calls(run, found.replicates)
    bursts = table.filter(pc.equal(table["phase"].cast(pa.string()), "burst"))
    means = bursts.group_by(["replicate", "burst"]).aggregate([("wall_ns", "mean")]).to_pylist()
    expected = sorted((one.number, math.exp(burst)) for one in found.replicates for burst in one.bursts)
    assert sorted((one["replicate"], one["wall_ns_mean"]) for one in means) == [
        pytest.approx(each) for each in expected
    ]


def test_streams_of_calls_come_one_by_one(run: RunFolder):
    found = load_run(run.path)
    streams = tables.streams_of_calls(run, found.replicates)
    assert set(next(streams)["target"].to_pylist()) == {OLD}
    assert set(next(streams)["target"].to_pylist()) == {NEW}
    assert next(streams, None) is None


def test_a_stream_that_breaks_the_contract_is_left_out_and_told(run: RunFolder):
    (run.settled / f"{NEW}-1.arrow").write_bytes(b"no stream")
    found = load_run(run.path)
    assert "is not an Arrow stream" in found.warnings[0]
    assert set(tables.calls(run, found.replicates)["target"].to_pylist()) == {OLD}


def test_a_stream_that_was_cut_gives_the_calls_up_to_its_last_flush(run: RunFolder):
    whole = load_run(run.path)
    path = run.settled / f"{NEW}-1.arrow"
    path.write_bytes(path.read_bytes()[:-200])
    found = load_run(run.path)
    assert len(found.replicates) == len(whole.replicates) - 1
    assert tables.calls(run, found.replicates).num_rows == len(found.replicates) * 6


def test_the_rows_of_a_case_that_the_plan_does_not_name_have_its_label_and_no_workload(run: RunFolder):
    found = load_run(run.path)
    stranger = found.replicates[0]._replace(case="other[a=b]")
    (row,) = tables.replicates(found.plan, [stranger]).to_pylist()
    assert (row["workload"], row["case"]) == (None, "other[a=b]")


def test_a_run_with_nothing_in_it_has_the_same_tables_without_rows(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan([EAGER]))
    found = load_run(run.path)
    replicates = tables.replicates(found.plan, found.replicates)
    assert (replicates.num_rows, replicates.column_names) == (0, ["workload", "case", *tables.REPLICATE.names])
    calls = tables.calls(run, found.replicates)
    assert calls.num_rows == 0
    assert calls.schema.equals(contract.arrow_schema(pa))
    assert tables.arms(found.evaluation).num_rows == 2


@pytest.mark.parametrize("scene", [scenes.everything, scenes.hostile, scenes.exploratory])
def test_every_scene_is_a_table_of_its_arms_and_one_of_its_comparisons(scene):
    found = scene()
    arms, comparisons = tables.arms(found), tables.comparisons(found.plan, found.comparisons)
    assert arms["target"].to_pylist() == [one.target for one in found.arms]
    assert arms["time_s"].to_pylist() == [one.time_ms and one.time_ms / 1e3 for one in found.arms]
    assert comparisons["candidate"].to_pylist() == [one.pair.flat.candidate for one in found.comparisons]
    assert comparisons["ratio"].to_pylist() == [one.ratio for one in found.comparisons]
