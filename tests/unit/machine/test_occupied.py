"""A machine's lock: runs share it, and a unit of a fleet has it alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import EngineUnavailable
from orchestrator.machine import occupied
from orchestrator.machine.occupied import occupy


@pytest.fixture(autouse=True)
def own_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setattr(occupied, "FOLDERS", (tmp_path / "absent", tmp_path))
    monkeypatch.delenv("TFCOMPARE_HOST", raising=False)
    return tmp_path


def test_runs_of_this_machine_do_not_mind_each_other():
    with occupy(alone=False), occupy(alone=False):
        pass


def test_a_unit_of_a_fleet_waits_for_no_run_and_is_given_back():
    with (
        occupy(alone=False),
        pytest.raises(
            EngineUnavailable, match=r"^another run is measuring on this machine; wait until it has finished$"
        ),
        occupy(alone=True),
    ):
        pass
    with occupy(alone=True):
        pass


def test_while_a_fleet_measures_a_run_is_refused():
    with (
        occupy(alone=True),
        pytest.raises(EngineUnavailable, match=r"^this machine is measuring for a fleet, which needs it alone; wait"),
        occupy(alone=False),
    ):
        pass


def test_simulated_hosts_have_a_lock_each(monkeypatch: pytest.MonkeyPatch, own_lock: Path):
    with occupy(alone=True):
        monkeypatch.setenv("TFCOMPARE_HOST", "a/../b")
        with occupy(alone=True):
            pass
    assert sorted(path.name for path in own_lock.iterdir()) == ["tfcompare-a_.._b.lock", "tfcompare.lock"]


def test_where_no_lock_can_be_made_runs_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(occupied, "FOLDERS", (tmp_path / "absent",))
    with occupy(alone=True), occupy(alone=True):
        pass


def test_a_link_in_its_place_is_not_followed(own_lock: Path):
    (own_lock / "tfcompare.lock").symlink_to(own_lock / "elsewhere")
    with occupy(alone=True):
        pass
    assert not (own_lock / "elsewhere").exists()
