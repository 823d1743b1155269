"""Files of the history as they were written are read."""

from pathlib import Path

import pyarrow.parquet as pq

from orchestrator.formats import POINTS
from orchestrator.history.model import AlarmOpened
from orchestrator.history.schema import FORMAT, SCHEMA
from orchestrator.history.store import Store
from tests.support.golden import GOLDEN
from tests.support.night_reports import NIGHT, alarm
from tests.support.nights import history


def test_points_are_those_that_were_written(tmp_path: Path):
    table = pq.ParquetFile(GOLDEN / "points.parquet").read()
    assert table.schema.equals(SCHEMA, check_metadata=True), "run `python tools/golden.py` and commit its files"
    assert table.schema.metadata[FORMAT.encode()].decode() == POINTS.mark
    folder = tmp_path / "points" / "2024-01"
    folder.mkdir(parents=True)
    (folder / "20240101-020000-golden-screen.parquet").write_bytes((GOLDEN / "points.parquet").read_bytes())
    read = Store(tmp_path).read()
    assert read.warnings == ()
    assert read.points() == history(1, 2)


def test_an_event_is_the_one_that_was_written(tmp_path: Path):
    folder = tmp_path / "events" / "2026-11"
    folder.mkdir(parents=True)
    (folder / "20261122-030000-000000-0000.json").write_bytes((GOLDEN / "event.json").read_bytes())
    assert Store(tmp_path).events() == ([AlarmOpened(at=NIGHT.at, alarm=alarm(1.5))], ())
