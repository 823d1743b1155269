"""A run folder from a damaged disk or from another person: read, or refused in one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import TfCompareError
from orchestrator.reports import json as report
from orchestrator.reports import matrix
from orchestrator.results import replicates
from orchestrator.results.run import load_run
from orchestrator.results.streams import Stream
from tests.fuzz.damage import damaged_bytes, damaged_json, damaged_text, dump
from tests.fuzz.memory import bounded_memory
from tests.support.bench import RUN
from tests.support.export_runs import everything
from tests.support.golden import stream

FOLDER = TemporaryDirectory()
SAMPLE = everything(Path(FOLDER.name) / "run").path
STREAM = "streams/2.0.0-1.arrow"
ENTRIES = [json.loads(line) for line in (SAMPLE / "journal.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def read_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bytes], None]:
    """Return a function that exchanges one file of a run and draws the run's table."""
    run = tmp_path_factory.mktemp("fuzz") / "run"
    shutil.copytree(SAMPLE, run)

    def read(name: str, content: bytes) -> None:
        path = run / name
        path.write_bytes(content)
        try:
            with bounded_memory():
                evaluation = load_run(run).evaluation
                # Everything that was believed can be drawn and written.
                matrix.render_matrix(evaluation)
                report.as_json(evaluation).encode()
        except TfCompareError as error:
            refused = error.headline
        else:
            refused = ""
        finally:
            path.write_bytes((SAMPLE / name).read_bytes())
        assert "\n" not in refused
        refused.encode()

    return read


def test_the_sample_itself_is_right(read_with):
    evaluation = load_run(SAMPLE).evaluation
    assert evaluation.comparisons
    read_with(STREAM, (SAMPLE / STREAM).read_bytes())


@given(damaged=damaged_json(json.loads((SAMPLE / "plan.json").read_text())))
def test_a_damaged_plan(read_with, damaged: object):
    read_with("plan.json", dump(damaged))


@given(damaged=damaged_json(json.loads((SAMPLE / "manifest.json").read_text())))
def test_a_damaged_manifest(read_with, damaged: object):
    read_with("manifest.json", dump(damaged))


@given(damaged=damaged_json(ENTRIES))
def test_a_damaged_journal(read_with, damaged: list[object]):
    read_with("journal.jsonl", b"".join(dump(entry) + b"\n" for entry in damaged))


@given(damaged=damaged_bytes((SAMPLE / "journal.jsonl").read_bytes()))
def test_a_journal_with_damaged_bytes(read_with, damaged: bytes):
    read_with("journal.jsonl", damaged)


@given(damaged=damaged_text((SAMPLE / "plan.json").read_text()), name=st.sampled_from(["plan.json", "manifest.json"]))
def test_json_that_is_none(read_with, damaged: str, name: str):
    read_with(name, damaged.encode("utf-8", "surrogatepass"))


@given(damaged=damaged_bytes((SAMPLE / STREAM).read_bytes()))
def test_a_damaged_stream(read_with, damaged: bytes):
    read_with(STREAM, damaged)


@given(damaged=damaged_bytes(stream("newest").read_bytes()))
def test_a_damaged_stream_of_a_worker_alone(tmp_path_factory: pytest.TempPathFactory, damaged: bytes):
    path = tmp_path_factory.getbasetemp() / "alone.arrow"
    path.write_bytes(damaged)
    loaded = replicates.load_replicates([Stream.at(path)], RUN)
    assert all(replicate.time_ns is None or replicate.time_ns > 0 for replicate in loaded.replicates)
