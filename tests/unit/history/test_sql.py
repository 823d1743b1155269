"""SQL sees the history as views, and nothing else; what it cannot have it is told in a line."""

import math
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from orchestrator.errors import UsageError
from orchestrator.history import schema
from orchestrator.history import sql as query
from orchestrator.history.model import AlarmOpened, CauseFound, Event
from orchestrator.history.night_rows import find_bounds
from orchestrator.history.series import all_series
from orchestrator.history.store import Read, Store
from tests.support import nights_shown as shown
from tests.support.nights import history


@pytest.fixture
def ask(read: Read, events: list[Event]):
    return lambda sql: query.query(sql, read, events).to_pylist()


def test_points_have_every_column_of_the_files(ask, read: Read):
    (row,) = ask("SELECT * FROM points ORDER BY started LIMIT 1")
    assert list(row) == schema.SCHEMA.names
    assert ask("SELECT count(*) AS n FROM points") == [{"n": read.table.num_rows}]


def test_a_night_of_a_series_is_what_the_reports_show(ask, read: Read):
    found = ask("SELECT * FROM series ORDER BY series, segment, night")
    expected = [
        (key.id, place, value)
        for key, series in sorted(all_series(read.table).items(), key=lambda item: item[0].id)
        for place, segment in enumerate(series.segments)
        for value in segment.values
    ]
    assert len(found) == len(expected)
    for row, (name, segment, value) in zip(found, expected, strict=True):
        assert (row["series"], row["segment"], row["night"]) == (name, segment, value.night)
        assert (row["effect"], row["error"], row["rounds"]) == pytest.approx((value.effect, value.error, value.rounds))
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(find_bounds(value))
        assert row["ratio"] == pytest.approx(math.exp(value.effect))


def test_beside_each_night_stands_the_control_arm_of_the_same(ask):
    pairs = ask(
        "SELECT a.control_effect, a.control_error, b.effect, b.error FROM series a LEFT JOIN series b "
        "ON b.case = a.case AND b.night = a.night AND b.target = a.reference || '+control'"
    )
    assert len(pairs) > 300
    assert all((row["control_effect"], row["control_error"]) == (row["effect"], row["error"]) for row in pairs)


def test_without_a_control_arm_there_is_none_beside(tmp_path: Path):
    made = history(4, 1, ("2.0.0",))
    store = shown.kept_in(tmp_path, [one for one in made if "+" not in one.target or one.night.day == 2])
    found = query.query("SELECT * FROM series WHERE target = '2.0.0' ORDER BY night", store.read(), []).to_pylist()
    assert [row["control_effect"] is not None for row in found] == [False, True, False, False]
    (tmp_path / "none").mkdir()
    store = shown.kept_in(tmp_path / "none", [one for one in made if "+" not in one.target])
    found = query.query("SELECT control_effect FROM series", store.read(), []).to_pylist()
    assert found == [{"control_effect": None}] * 4


def test_alarms_stand_as_they_are_now_and_events_say_how_they_came_to(ask):
    (alarm,) = ask("SELECT id, state, note, target, first, ratio, surroundings FROM alarms")
    assert (alarm["id"], alarm["state"], alarm["note"], alarm["target"]) == ("0f9571", "known", "wanted", "nightly")
    assert alarm["first"] == date(2024, 2, 10)
    assert alarm["ratio"] == pytest.approx(1.12, rel=0.01)
    assert alarm["surroundings"] == ["nightly: 2.22.0.dev20240209 -> 2.22.0.dev20240210"]
    assert [row["state"] for row in ask("SELECT * FROM events ORDER BY moment")] == ["new", "known"]
    (night,) = ask("SELECT night, outcome, targets FROM nights")
    assert night == {"night": shown.NIGHT.night, "outcome": "measured", "targets": ["2.13", "nightly"]}


def test_what_was_found_of_a_cause_is_in_the_alarm_and_no_event(read: Read, events: list[Event]):
    [opened] = [event for event in events if isinstance(event, AlarmOpened)]
    known = [*events, CauseFound(at=opened.at, alarm=opened.alarm.id, bad="2.22.0.dev20240209", findings=("grown: f",))]
    assert query.query("SELECT bad, findings FROM alarms", read, known).to_pylist() == [
        {"bad": "2.22.0.dev20240209", "findings": ["grown: f"]}
    ]
    assert query.query("SELECT state FROM events", read, known).num_rows == 2


def test_views_join(ask):
    (row,) = ask("SELECT alarms.id, series.ratio FROM alarms JOIN series ON series.series = alarms.series "
                 "AND series.night = alarms.first")  # fmt: skip
    assert row["id"] == "0f9571"


def test_every_view_is_listed_with_its_columns(ask):
    assert {row["name"] for row in ask("SHOW TABLES")} == set(query.VIEWS)
    text = "\n".join(line.plain for line in query.listing())
    for name, (_, of) in query.VIEWS.items():
        assert [row["column_name"] for row in ask(f"DESCRIBE {name}")] == of.names
        assert f"\n{name}: " in f"\n{text}"
        assert all(f"  {column} " in text for column in of.names)


@pytest.mark.parametrize("example", query.EXAMPLES)
def test_the_examples_work(ask, example: str):
    assert ask(example)


def test_an_empty_history_has_the_same_views(tmp_path: Path):
    store = Store(tmp_path)
    for name, (_, of) in query.VIEWS.items():
        found = query.query(f"SELECT * FROM {name}", store.read(), store.events()[0])
        assert (found.num_rows, found.column_names) == (0, of.names)


PIVOT = "PIVOT series ON target USING median(ratio) GROUP BY night"


@pytest.mark.parametrize("sql", [PIVOT, f"SELECT * FROM ({PIVOT})", f"WITH all_nights AS ({PIVOT}) FROM all_nights"])
def test_values_become_columns(ask, sql: str):
    expected = {
        row["night"]: row["middle"]
        for row in ask("SELECT night, median(ratio) AS middle FROM series WHERE target = 'nightly' GROUP BY night")
    }
    assert expected
    assert {row["night"]: row["nightly"] for row in ask(f"{sql};") if row["nightly"] is not None} == expected


OUTSIDE = {
    "a file": "SELECT * FROM read_csv('{path}')",
    "a file by its name": "SELECT * FROM '{path}'",
    "a folder": "SELECT * FROM glob('{folder}/*')",
    "a text": "SELECT * FROM read_text('{path}')",
    "an address": "SELECT * FROM read_csv('https://example.org/x.csv')",
    "a copy": "COPY points TO '{folder}/out.parquet'",
    "another database": "ATTACH '{folder}/x.db'",
    "an export": "EXPORT DATABASE '{folder}/all'",
    "an extension": "INSTALL httpfs",
    "its own loading": "LOAD httpfs",
    "a setting": "SET enable_external_access = true",
    "a folder to spill into": "SET temp_directory = '{folder}'",
    "a table": "CREATE TABLE mine AS SELECT 1",
    "a view's end": "DROP VIEW points",
    "a deletion": "DELETE FROM points",
    "an insertion": "INSERT INTO points SELECT * FROM points",
    "a pragma": "PRAGMA database_list",
    "a call": "CALL pragma_version()",
    "a table of columns": "CREATE TABLE mine AS PIVOT nights ON outcome USING count(*)",
    "a copy of columns": "COPY (PIVOT nights ON outcome USING count(*)) TO '{folder}/out.parquet'",
    "columns, and a deletion": "PIVOT nights ON outcome USING count(*); DROP VIEW points",
}


@pytest.mark.parametrize("sql", OUTSIDE.values(), ids=OUTSIDE)
def test_a_query_reaches_nothing_but_the_history(ask, tmp_path: Path, sql: str):
    (tmp_path / "in.csv").write_text("a\nsecret\n")
    with pytest.raises(UsageError) as told:
        ask(sql.format(path=tmp_path / "in.csv", folder=tmp_path))
    assert "secret" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_what_python_holds_is_no_view(ask):
    secrets = pa.table({"a": [1]})
    assert secrets.num_rows == 1
    with pytest.raises(UsageError, match="Table with name secrets does not exist"):
        ask("SELECT * FROM secrets")


WRONG = {
    "an unknown view": ("SELECT * FROM pionts", "the views are points, series, alarms, events, nights"),
    "an unknown column": ("SELECT nigth FROM nights", "nights has ended, night, started"),
    "no SQL": ("selec 1", "syntax error"),
    "no end": ("SELECT", "Parser Error"),
    "two queries": ("SELECT 1; SELECT 2", "this is 2"),
    "two of columns": (f"{PIVOT}; {PIVOT}", "this is 2"),
    "nothing": ("  ", "this is 0"),
    "a comment": ("-- night", "this is 0"),
    "no number": ("SELECT CAST(host AS INTEGER) FROM points", "Conversion Error"),
}


@pytest.mark.parametrize(("sql", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_query_is_answered_in_one_line(ask, sql: str, words: str):
    with pytest.raises(UsageError) as told:
        ask(sql)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_a_query_that_takes_too_much_is_ended_and_nothing_is_left_on_the_disk(monkeypatch, ask, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(query, "MEMORY", "50MB")
    with pytest.raises(UsageError, match="select fewer rows"):
        ask("SELECT range FROM range(100000000) ORDER BY range DESC")
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_is_too_large_is_ended(monkeypatch, ask):
    monkeypatch.setattr(query, "MOST_BYTES", 10**6)
    with pytest.raises(UsageError, match="select fewer rows"):
        ask("SELECT range FROM range(10000000)")
