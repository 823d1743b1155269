"""Streams that the real worker wrote with the oldest and the newest pyarrow are read alike, in every test run."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from orchestrator import contract
from orchestrator.model import Target
from orchestrator.reports import json as report
from orchestrator.results import replicates, streams
from orchestrator.results.run import load_run
from orchestrator.results.rundir import RunDir
from tests.support.bench import RUN
from tests.support.golden import GOLDEN, stream

NAMES = ("oldest", "newest")
# What two writings of the same replicates may differ in.
MEASURED = {"wall_ns", "cpu_ns", "calls", *contract.REPLICATE_FIELDS} - {"traces", "checksum"}


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest) -> Path:
    return stream(request.param)


def test_the_oldest_was_written_by_the_oldest_that_is_promised():
    writer = json.loads((GOLDEN / "oldest.json").read_text())
    assert writer["python"].startswith("3.6.")
    assert writer["pyarrow"] == "6.0.1"


def test_it_was_written_under_this_contract(golden: Path):
    with pa.OSFile(str(golden)) as source, pa.ipc.open_stream(source) as reader:
        schema = reader.schema
    assert schema.metadata[contract.FINGERPRINT_KEY].decode() == contract.FINGERPRINT, (
        "the contract has changed: run `python tools/golden.py` and commit its files together with the change"
    )
    assert schema.equals(contract.arrow_schema(pa), check_metadata=True)


def test_every_row_is_one_that_row_allows(golden: Path):
    table, cut = streams.read_stream(golden)
    assert not cut
    rows = streams.check(golden, table, RUN).to_pylist()
    assert [streams.Row.model_validate(row).model_dump() for row in rows] == rows


def test_it_holds_two_rounds_of_two_cases(golden: Path):
    loaded = replicates.load([streams.Stream.at(golden)], RUN)
    assert loaded.problems == loaded.broken == ()
    assert [(found.round, found.case, found.traces) for found in loaded.replicates] == [
        (1, "golden[style=function,size=3]", 1),
        (1, "golden[style=eager,size=5]", 0),
        (2, "golden[style=function,size=3]", 1),
        (2, "golden[style=eager,size=5]", 0),
    ]
    assert all(found.steady_ns > 0 for found in loaded.replicates)


def test_both_say_the_same_but_for_what_a_machine_measures():
    """Checksums too: an old numpy and a new one digest the same output alike."""
    oldest, newest = (streams.read_stream(stream(name))[0].drop_columns(sorted(MEASURED)) for name in NAMES)
    assert oldest.to_pylist() == newest.to_pylist()


def test_one_that_was_interrupted_gives_its_whole_replicates(golden: Path, tmp_path: Path):
    whole = golden.read_bytes()
    cut = tmp_path / "cut.arrow.partial"
    cut.write_bytes(whole[: len(whole) - len(whole) // 8])
    loaded = replicates.load([streams.Stream.at(cut)], RUN)
    assert [found.number for found in loaded.replicates] == [1, 2, 3]
    assert loaded.problems == ("cut.arrow.partial was not closed by its worker: read up to its last whole replicate",)


@pytest.mark.parametrize("fingerprint", ["b441cc3bc83f4f90", "229f4b63a8e8c23b"])
def test_a_stream_of_an_earlier_contract_is_read_without_the_columns_that_it_lacks(fingerprint: str):
    path = stream(f"contract-{fingerprint}")
    loaded = replicates.load([streams.Stream.at(path)], RUN)
    assert loaded.problems == loaded.broken == ()
    assert len(loaded.replicates) == 4
    lacked = {(each.items, each.step_ns, each.losses, each.device) for each in loaded.replicates}
    assert lacked == {(None, None, None, None)}
    assert all(each.calls for each in loaded.replicates)


def test_a_run_of_an_earlier_contract_is_read_and_judged_by_the_rule_of_today():
    """`run-1` is a run of TensorFlow 1.14, 2.0 and 2.13 with three rounds, `run-1.json` what is reported of it.

    A change of the statistics changes the steady times and the ratios: then write these figures again.
    """
    reported = json.loads((GOLDEN / "run-1.json").read_text())
    run = load_run(GOLDEN / "run-1")
    assert run.manifest.contract in contract.READABLE
    assert run.manifest.contract != contract.FINGERPRINT
    assert contains(json.loads(report.as_json(run.comparison)), reported)


def test_the_plan_of_an_earlier_release_names_its_versions():
    plan = RunDir.open(GOLDEN / "run-1").read_plan()
    assert plan.versions == (Target("1.14.0"), Target("2.0.0"), Target("2.13.0"))


def test_a_run_with_a_control_arm_is_reported_byte_for_byte_as_it_was():
    """`control-1` was written by a release that kept versions as texts, `control-1.json` is what it reported.

    A change of the statistics changes the figures: then write the report again.
    """
    run = load_run(GOLDEN / "control-1")
    assert run.plan.versions[:2] == (Target("1.14.0"), Target("1.14.0", control=True))
    assert report.as_json(run.comparison) == (GOLDEN / "control-1.json").read_text()


def test_what_is_read_of_a_run_with_a_control_arm_is_written_byte_for_byte_as_it_was(tmp_path: Path):
    old, new = RunDir.open(GOLDEN / "control-1"), RunDir.create(tmp_path / "run")
    new.write_plan(old.read_plan())
    new.write_manifest(old.read_manifest())
    for entry in old.entries():
        new.record(entry)
    for name in ("plan.json", "manifest.json", "journal.jsonl"):
        assert (new.path / name).read_bytes() == (old.path / name).read_bytes(), name


def contains(new: object, old: object) -> bool:
    """Whether `new` says what `old` says; it may say more."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and contains(new[key], value) for key, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(contains, new, old))
    if isinstance(old, float):
        return new == pytest.approx(old)
    return new == old
