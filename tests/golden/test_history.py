"""Files of the history as every layout there ever was wrote them are read alike. They are written once, and kept."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from orchestrator.history import schema
from orchestrator.history.schema import CURRENT, LAYOUT, SCHEMA
from orchestrator.history.store import Store

GOLDEN = Path(__file__).parent


def test_every_layout_has_its_file():
    found = {path.stem for path in GOLDEN.glob("history-*.parquet")}
    assert found == {f"history-{number}" for number in range(1, CURRENT + 1)}


@pytest.mark.parametrize("layout", range(1, CURRENT + 1))
def test_a_file_of_each_layout_becomes_todays(layout: int):
    table = pq.ParquetFile(GOLDEN / f"history-{layout}.parquet").read()
    assert table.schema.metadata[LAYOUT.encode()] == str(layout).encode()
    assert schema.current(table).schema.equals(SCHEMA, check_metadata=True)


def test_layouts_differ_in_nothing_but_what_was_added(tmp_path: Path):
    folder = tmp_path / "points" / "2024-01"
    folder.mkdir(parents=True)
    read = {}
    for layout in range(1, CURRENT + 1):
        place = folder / "20240101-020000-golden-screen.parquet"
        place.write_bytes((GOLDEN / f"history-{layout}.parquet").read_bytes())
        found = Store(tmp_path).read()
        assert found.warnings == ()
        read[layout] = found.points()
    assert [point.stage for point in read[1]] == ["screen"] * 4
    assert all(points == read[CURRENT] for points in read.values())
