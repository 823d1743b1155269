"""Answers of a query, for people and for programs."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestrator.errors import UsageError
from orchestrator.history import sql as query
from orchestrator.history import sql_output
from orchestrator.history.model import Event
from orchestrator.history.store import Read
from orchestrator.terminal.text import render_plain


@pytest.fixture
def odd(read: Read, events: list[Event]) -> pa.Table:
    """Whatever SQL may come up with."""
    return query.query(
        "SELECT 1 AS a, 2 AS a, DATE '2026-01-02' AS day, TIMESTAMP '2026-01-02 03:04:05' AS moment, "
        "[1.5, NULL] AS many, {'x': DATE '2026-01-02'} AS both, 'nan'::DOUBLE AS none, NULL AS nothing, "
        "1.25::DECIMAL(5,2) AS exact, 'a,\"b\"' AS text, INTERVAL 3 DAY AS long, 'x'::BLOB AS raw",
        read,
        events,
    )


def test_an_answer_is_json(odd: pa.Table):
    (row,) = json.loads(sql_output.format_result(odd, "json"))
    assert (row["a"], row["a_2"]) == (1, 2)
    assert (row["day"], row["moment"]) == ("2026-01-02", "2026-01-02T03:04:05")
    assert (row["many"], row["both"], row["none"], row["nothing"]) == ([1.5, None], {"x": "2026-01-02"}, None, None)
    assert row["exact"] == 1.25


def test_an_answer_is_csv(odd: pa.Table):
    names, values = csv.reader(io.StringIO(sql_output.format_result(odd, "csv")))
    assert names[:3] == ["a", "a", "day"]
    assert values[2:4] == ["2026-01-02", "2026-01-02T03:04:05"]
    assert values[4] == "[1.5, null]"
    assert values[9] == 'a,"b"'


def test_an_answer_is_parquet(read: Read, events: list[Event], tmp_path: Path):
    found = query.query("SELECT * FROM points", read, events)
    sql_output.write_answer(found, "parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(found)
    with pytest.raises(UsageError, match="add --output FILE"):
        sql_output.check_answer_file("parquet", None)
    with pytest.raises(UsageError, match="cannot write"):
        sql_output.write_answer(found, "csv", tmp_path / "no" / "such" / "folder")


def test_a_table_shows_the_first_rows_and_says_how_many_there_are(monkeypatch, read: Read, events: list[Event]):
    monkeypatch.setattr(sql_output, "MOST_ROWS", 3)
    found = query.query("SELECT range AS number, chr(27) || '[2J' AS text FROM range(5)", read, events)
    text = render_plain(lambda width: sql_output.draw_answer(found))
    assert text.splitlines()[-1] == "the first 3 of 5 rows: --format csv has them all"
    assert "\\x1b[2J" in text
    assert "\x1b" not in text
