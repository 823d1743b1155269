"""A bench that was interrupted goes on where it stopped."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import store
from bench.store import Store
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import finished, plan, run_folder


@pytest.fixture
def raw(tmp_path, monkeypatch) -> Store:
    monkeypatch.setattr(store, "RAW", tmp_path / "raw")
    monkeypatch.setattr(store, "MEASURED", tmp_path / "measured")
    return Store("made")


def measure(path: Path, calls: list[str], *, cut: bool = False) -> None:
    calls.append(path.name)
    run_folder(path, plan()).record(finished(how="", seconds=1.0, cut=cut))


def test_a_run_that_came_to_its_end_is_not_measured_again(raw):
    calls: list[str] = []
    assert raw.run("run-1", measure, calls) == raw.run("run-1", measure, calls)
    assert store.is_finished(raw.folder / "run-1")
    assert calls == ["run-1"]


def test_a_run_that_was_cut_short_is_measured_again(raw):
    calls: list[str] = []
    measure(raw.folder / "run-1", calls, cut=True)
    RunFolder.create(raw.folder / "run-2")
    for name in ("run-1", "run-2"):
        assert not store.is_finished(raw.folder / name)
        raw.run(name, measure, calls)
        assert store.is_finished(raw.folder / name)
    assert calls == ["run-1", "run-1", "run-2"]


RESULT = {"words": ["slower"], "wall_s": 1.5}


def test_results_are_read_as_they_were_written_also_by_the_next_process(raw):
    assert raw.read("trial") is None
    raw.write("trial", RESULT)
    raw.write("other", 1)
    for each in (raw, Store("made")):
        assert each.read("trial") == RESULT
        assert each.read("other") == 1
    assert f"{datetime.now(UTC):%Y-%m-%d}" in raw.describe()


def test_a_bench_that_is_done_starts_from_nothing_and_can_still_be_looked_at(raw, tmp_path):
    raw.run("run-1", measure, [])
    raw.write("trial", RESULT)
    raw.retire()
    assert store.is_finished(tmp_path / "raw" / "made-last" / "run-1")
    kept = json.loads((tmp_path / "measured" / "made.json").read_text())
    assert kept["results"]["trial"]["result"] == RESULT
    second = Store("made")
    assert not store.is_finished(second.folder / "run-1")
    assert second.read("trial") is None


def test_a_tiny_bench_leaves_nothing_in_the_repository(raw, tmp_path):
    tiny = Store("made", tiny=True)
    tiny.write("trial", RESULT)
    assert tiny.read("trial") == RESULT
    tiny.retire()
    assert not (tmp_path / "measured").exists()
