"""A bench that was interrupted goes on where it stopped."""

from pathlib import Path

import pytest

from bench import store
from bench.store import Store
from orchestrator.model import Finished
from orchestrator.results.rundir import RunDir
from tests.support.builders import plan, run_directory


@pytest.fixture
def raw(tmp_path, monkeypatch) -> Store:
    monkeypatch.setattr(store, "ROOT", tmp_path)
    return Store("made")


def measure(path: Path, calls: list[str], *, cut: bool = False) -> None:
    calls.append(path.name)
    run_directory(path, plan()).record(Finished(how="", seconds=1.0, cut=cut))


def test_a_run_that_came_to_its_end_is_not_measured_again(raw):
    calls: list[str] = []
    assert not raw.has("run-1")
    assert raw.run("run-1", measure, calls) == raw.run("run-1", measure, calls)
    assert raw.has("run-1")
    assert calls == ["run-1"]


def test_a_run_that_was_cut_short_is_measured_again(raw):
    calls: list[str] = []
    measure(raw.directory / "run-1", calls, cut=True)
    RunDir.create(raw.directory / "run-2")
    for name in ("run-1", "run-2"):
        assert not raw.has(name)
        raw.run(name, measure, calls)
        assert raw.has(name)
    assert calls == ["run-1", "run-1", "run-2"]


def test_results_are_read_as_they_were_written(raw):
    assert raw.read("trial") is None
    raw.write("trial", {"words": ["slower"], "wall_s": 1.5})
    assert raw.read("trial") == {"words": ["slower"], "wall_s": 1.5}


def test_a_bench_that_is_done_begins_anew_and_can_still_be_looked_at(raw, tmp_path):
    raw.run("run-1", measure, [])
    raw.retire()
    assert store.is_finished(tmp_path / "made-last" / "run-1")
    assert not Store("made").has("run-1")
