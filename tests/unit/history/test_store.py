"""The folder of the history: what is written once stays, what cannot be read harms nothing else."""

import json
import multiprocessing
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestrator.errors import UsageError
from orchestrator.formats import EVENT, POINTS
from orchestrator.history.model import StateChanged
from orchestrator.history.schema import FORMAT, SCHEMA
from orchestrator.history.store import Store
from tests.support.nights import history, of_metric

NOW = datetime(2026, 11, 22, 2, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "history", quarantine=True)


def nights(store: Store, count: int = 3):
    points = history(count, 2)
    for run in dict.fromkeys(point.run for point in points):
        store.append([point for point in points if point.run == run])
    return points


def test_points_come_back_as_they_were_written(store: Store):
    points = nights(store)
    read = store.read()
    assert read.points() == points
    assert read.warnings == ()
    assert store.list_runs() == {point.run for point in points}


def test_a_file_a_run_and_stage_lies_in_the_folder_of_its_month(store: Store):
    [point] = history(1, 1, ["2.0.0"], control=False)
    path = store.append([point])
    assert path.relative_to(store.path).as_posix() == f"points/2024-01/20240101-020000-{point.run}-screen.parquet"
    again = store.append([replace(point, stage="confirm")])
    assert path != again
    assert len(store.read().points()) == 2


def test_screens_come_before_what_confirms_them(store: Store):
    [point] = history(1, 1, ["2.0.0"], control=False)
    store.append([replace(point, stage="confirm")])
    store.append([point])
    assert [one.stage for one in store.read().points()] == ["screen", "confirm"]


def test_an_empty_history_is_an_empty_table(store: Store):
    assert store.read().points() == []
    assert store.read().table.schema.equals(SCHEMA)
    assert store.events() == ([], ())
    assert store.list_runs() == frozenset()


def test_a_file_that_is_cut_short_is_put_aside_and_named_and_the_rest_is_used(store: Store):
    points = nights(store)
    torn = sorted(store.path.glob("points/*/*.parquet"))[1]
    torn.write_bytes(torn.read_bytes()[:-20])
    read = store.read()
    [warning] = read.warnings
    assert torn.name in warning
    assert "moved to" in warning
    assert not torn.exists()
    [aside] = store.path.glob("quarantine/*")
    assert aside.name.endswith(torn.name)
    assert {point.run for point in read.points()} == {points[0].run, points[-1].run}
    assert store.read().warnings == ()


@pytest.mark.parametrize("name", ["target", "reference"])
def test_a_file_with_what_is_no_version_is_put_aside(store: Store, name: str):
    [point] = history(1, 1, ["2.0.0"], control=False)
    path = store.append([replace(point, **{name: "+control"})])
    read = store.read()
    assert read.points() == []
    assert read.warnings[0].startswith(
        f"{path} is left out, since it cannot be read: '' is not a valid name of a target"
    )


def test_a_file_with_a_damaged_text_is_put_aside(store: Store):
    nights(store)
    damaged = sorted(store.path.glob("points/*/*.parquet"))[1]
    table = pq.ParquetFile(damaged).read()
    text = pa.array([b"\xff\xfe"] * table.num_rows, pa.binary()).view(pa.string())
    pq.write_table(table.set_column(table.schema.get_field_index("host"), table.schema.field("host"), text), damaged)
    read = store.read()
    [warning] = read.warnings
    assert damaged.name in warning
    assert not damaged.exists()
    assert read.points()


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({}, "the mark of its format"),
        ({FORMAT: "tfcompare.event/1"}, "the mark of its format"),
        ({FORMAT: POINTS.mark}, "no column"),
    ],
)
def test_what_no_tfcompare_wrote_is_put_aside(store: Store, metadata: dict[str, str], why: str):
    nights(store, 1)
    foreign = store.path / "points" / "2024-01" / "20240101-000000-foreign-screen.parquet"
    pq.write_table(pa.table({"night": [1]}).replace_schema_metadata(metadata), foreign)
    [warning] = store.read().warnings
    assert why in warning
    assert "quarantine" in warning
    assert not foreign.exists()


def test_points_of_another_number_are_left_where_they_are(store: Store):
    nights(store, 1)
    newer = store.path / "points" / "2024-01" / "20240101-000000-newer-screen.parquet"
    pq.write_table(SCHEMA.empty_table().replace_schema_metadata({FORMAT: "tfcompare.points/2"}), newer)
    assert store.read().warnings == (
        f"{newer} is left out: its format is tfcompare.points/2, and this tfcompare reads {POINTS.mark}: the tfcompare "
        "that wrote it reads it",
    )
    assert newer.exists()


def test_points_of_a_metric_that_nobody_knows_are_left_out(store: Store):
    store.append(of_metric(history(1, 1), "memory"))
    assert {point.metric for point in store.read().points()} == {"memory"}
    store.append(of_metric(history(1, 1, seed=2), "warmth"))
    found = store.read()
    assert {point.metric for point in found.points()} == {"memory"}
    assert "it follows 'warmth', which this version of tfcompare does not know" in found.warnings[0]


def test_points_of_a_time_that_nobody_knows_are_left_out(store: Store):
    store.append([replace(point, judge="cpu") for point in history(1, 1)])
    assert {point.judge for point in store.read().points()} == {"cpu"}
    store.append([replace(point, judge="moon") for point in history(1, 1, seed=2)])
    found = store.read()
    assert {point.judge for point in found.points()} == {"cpu"}
    assert "it is judged by 'moon', which this tfcompare does not know" in found.warnings[0]


def test_events_come_in_the_order_in_which_they_happened(store: Store):
    later = StateChanged(at=NOW + timedelta(hours=1), alarm="a1", state="known", note="driver")
    sooner = StateChanged(at=NOW, alarm="a1", state="confirmed")
    store.record(later)
    store.record(sooner)
    assert store.events() == ([sooner, later], ())


def test_an_event_that_cannot_be_read_is_put_aside(store: Store):
    store.record(StateChanged(at=NOW, alarm="a1", state="confirmed"))
    broken = store.record(StateChanged(at=NOW, alarm="a1", state="known"))
    broken.write_text('{"kind": "moved"')
    found, [warning] = store.events()
    assert len(found) == 1
    assert broken.name in warning
    assert not broken.exists()


def test_only_a_store_that_may_move_files_moves_them(store: Store):
    nights(store, 1)
    [points] = store.path.glob("points/*/*.parquet")
    event = store.record(StateChanged(at=NOW, alarm="a1", state="known"))
    points.write_bytes(b"torn")
    event.write_text("{")
    reader = Store(store.path)
    [of_points], [of_event] = reader.read().warnings, reader.events()[1]
    assert of_points.startswith(f"{points} is left out")
    assert of_event.startswith(f"{event} is left out")
    assert points.exists()
    assert event.exists()


def test_an_event_of_another_number_is_left_out_and_stays(store: Store):
    path = store.record(StateChanged(at=NOW, alarm="a1", state="known"))
    path.write_text(path.read_text().replace(EVENT.mark, "tfcompare.event/2").replace("known", "unheard"))
    found, [warning] = store.events()
    assert found == []
    assert f"its format is tfcompare.event/2, and this tfcompare reads {EVENT.mark}" in warning
    assert path.exists()


def test_an_event_without_its_mark_is_put_aside(store: Store):
    path = store.record(StateChanged(at=NOW, alarm="a1", state="known"))
    facts = json.loads(path.read_text())
    assert facts.pop("format") == EVENT.mark
    path.write_text(json.dumps(facts))
    found, [warning] = store.events()
    assert found == []
    assert "it does not begin with the mark of its format" in warning
    assert not path.exists()


@pytest.mark.parametrize("pattern", ["points/*/*", "events/*/*"])
def test_a_file_that_cannot_be_opened_now_is_reported_and_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch, pattern: str
):
    nights(store, 1)
    store.record(StateChanged(at=NOW, alarm="a1", state="known"))
    [locked] = store.path.glob(pattern)
    read_bytes = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert [*store.read().warnings, *store.events()[1]] == [f"{locked} is left out: Permission denied"]
    assert locked.exists()


def _append(path: Path, seed: int) -> None:
    for night in range(5):
        points = [point for point in history(5, 3, seed=seed) if point.night.day == night + 1]
        Store(path).append(points)


def test_those_who_write_at_the_same_time_are_not_in_each_others_way(store: Store):
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_append, args=(store.path, seed)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 4
    read = store.read()
    assert read.warnings == ()
    assert len(read.points()) == 4 * 5 * 3 * 3
    assert not list(store.path.rglob(".*"))


def test_no_room_says_what_to_do_and_leaves_no_half_file(store: Store, monkeypatch: pytest.MonkeyPatch):
    def full(partial: str, name: str, **folders: int) -> None:
        raise OSError(28, "No space left on device")

    nights(store, 1)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match=r"No space left on device.*tfcompare history import"):
        store.append(history(1, 1, seed=9))
    assert len(list(store.path.rglob("*.parquet"))) == 1


def test_a_folder_that_cannot_be_is_told(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write the history"):
        Store(tmp_path / "file").append(history(1, 1))
