"""A file of each format, as it was written once, is read as what was written."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from orchestrator.atlas.figures import read_figures
from orchestrator.atlas.state import read_atlas
from orchestrator.bisect import state
from orchestrator.catalog import trust
from orchestrator.fleet import machines
from orchestrator.formats import (
    ATLAS,
    ATLAS_STATE,
    EVENT,
    FLEET,
    FORMATS,
    MODELS,
    POINTS,
    PROFILE,
    RUN,
    SEARCH,
    TRUST,
    UPGRADE,
    WHY,
    Format,
)
from orchestrator.history.model import AlarmOpened
from orchestrator.history.schema import FORMAT, SCHEMA
from orchestrator.history.store import Store
from orchestrator.profiling import stored
from orchestrator.results.run import load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.saved_models.report import models_as_object
from orchestrator.saved_models.stored import read_models
from orchestrator.upgrade.state import read_upgrade
from orchestrator.why.state import read_question
from tests.support.atlases import figures
from tests.support.golden import ASKED, FOLLOWED, GOLDEN, MOVED, NAMED, PROFILED, TRUSTED
from tests.support.night_reports import NIGHT, alarm
from tests.support.nights import history
from tests.support.saved_tables import DIES, table
from tests.support.searches import SCENES
from tests.support.small_run import write_run

FILES = {
    RUN: "run/plan.json", PROFILE: "profile/profile.json", SEARCH: "bisect.json", WHY: "why.json", EVENT: "event.json",
    TRUST: "trusted.json", FLEET: "fleet.json", POINTS: "points.parquet", UPGRADE: "upgrade.json",
    MODELS: "models.json", ATLAS: "figures.json", ATLAS_STATE: "atlas.json",
}  # fmt: skip


@pytest.mark.parametrize("of", FORMATS, ids=lambda of: of.name)
def test_every_format_has_a_file_of_its_number(of: Format):
    path = GOLDEN / FILES[of]
    if path.suffix == ".parquet":
        of.check(pq.ParquetFile(path).schema_arrow.metadata[FORMAT.encode()].decode())
    else:
        assert of.unstamp(path.read_bytes())


def test_a_run_is_the_one_that_was_written(tmp_path: Path):
    before, now = RunFolder.open(GOLDEN / "run"), RunFolder.open(write_run(tmp_path / "run"))
    assert (before.read_plan(), before.read_manifest()) == (now.read_plan(), now.read_manifest())
    assert before.read_journal() == now.read_journal()
    assert before.read_begun() == replace(now.read_begun(), created=before.read_begun().created)
    assert load_run(before.path).evaluation == load_run(now.path).evaluation
    assert {each.verdict for each in load_run(before.path).comparisons} == {"slower", "same"}


def test_a_profile_is_the_one_that_was_written():
    found = stored.read_profile(GOLDEN / "profile")
    assert (found.heading, found.arms) == (PROFILED.heading, PROFILED.arms)


def test_a_search_is_the_one_that_was_written():
    assert state.read_state(GOLDEN) == SCENES["one"]()


def test_a_question_is_the_one_that_was_written():
    assert read_question(GOLDEN) == ASKED


def test_an_upgrade_is_the_one_that_was_written():
    assert read_upgrade(GOLDEN) == MOVED


def test_an_atlas_is_the_one_that_was_written():
    assert read_atlas(GOLDEN) == FOLLOWED
    assert read_figures(GOLDEN / "figures.json") == figures()


def test_a_table_of_saved_models_is_the_one_that_was_written(tmp_path: Path):
    assert models_as_object(read_models(GOLDEN)) == models_as_object(table(tmp_path, wrong=DIES))


def test_what_was_trusted_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    trust.file().parent.mkdir(exist_ok=True)
    trust.file().write_bytes((GOLDEN / "trusted.json").read_bytes())
    assert trust.read_all() == {str(path): trusted for path, trusted in TRUSTED.items()}


def test_a_fleet_is_the_one_that_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    machines.state_file().parent.mkdir(parents=True)
    machines.state_file().write_bytes((GOLDEN / "fleet.json").read_bytes())
    assert machines.read_fleet() == NAMED


def test_points_are_those_that_were_written(tmp_path: Path):
    assert pq.ParquetFile(GOLDEN / "points.parquet").schema_arrow.equals(SCHEMA, check_metadata=True), (
        "the format has changed: run `python tools/golden.py` and commit its files together with the change"
    )
    read = Store(leave(tmp_path, "points", "points.parquet")).read()
    assert (read.points(), read.warnings) == (history(1, 2), ())


def test_an_event_is_the_one_that_was_written(tmp_path: Path):
    store = Store(leave(tmp_path, "events", "event.json"))
    assert store.events() == ([AlarmOpened(at=NIGHT.at, alarm=alarm(1.5))], ())


def leave(folder: Path, kind: str, name: str) -> Path:
    """Put a golden file into a history."""
    (folder / kind / "2024-01").mkdir(parents=True)
    (folder / kind / "2024-01" / f"20240101-020000-golden-screen{Path(name).suffix}").write_bytes(
        (GOLDEN / name).read_bytes()
    )
    return folder
