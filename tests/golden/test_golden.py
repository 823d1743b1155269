"""Streams that the real worker wrote with the oldest and the newest pyarrow are read alike, in every test run."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from orchestrator import contract
from orchestrator.results import replicates, streams
from tests.support.bench import RUN
from tests.support.golden import GOLDEN, stream

NAMES = ("oldest", "newest")
# What two writings of the same replicates may differ in.
MEASURED = {"wall_ns", "cpu_ns", "calls", *contract.REPLICATE_FIELDS} - {"traces", "output", "fifth_output"}


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
    rows = streams.check_rows(golden, table, RUN).to_pylist()
    assert [streams.Row.model_validate(row).model_dump() for row in rows] == rows


def test_it_holds_two_rounds_of_two_cases(golden: Path):
    loaded = replicates.load_replicates([streams.Stream.at(golden)], RUN)
    assert loaded.problems == loaded.broken == ()
    assert [(found.round, found.case, found.traces) for found in loaded.replicates] == [
        (1, "golden[style=function,size=3]", 1),
        (1, "golden[style=eager,size=5]", 0),
        (2, "golden[style=function,size=3]", 1),
        (2, "golden[style=eager,size=5]", 0),
    ]
    assert all(found.time_ns > 0 for found in loaded.replicates)


def test_both_say_the_same_but_for_what_a_machine_measures():
    """Sketches too: an old numpy and a new one digest and add up the same output alike."""
    oldest, newest = (streams.read_stream(stream(name))[0].drop_columns(sorted(MEASURED)) for name in NAMES)
    assert oldest.to_pylist() == newest.to_pylist()


def test_one_that_was_interrupted_gives_its_whole_replicates(golden: Path, tmp_path: Path):
    whole = golden.read_bytes()
    cut = tmp_path / "cut.arrow.partial"
    cut.write_bytes(whole[: len(whole) - len(whole) // 8])
    loaded = replicates.load_replicates([streams.Stream.at(cut)], RUN)
    assert [found.number for found in loaded.replicates] == [1, 2, 3]
    assert loaded.problems == ("cut.arrow.partial was not closed by its worker: read up to its last whole replicate",)
