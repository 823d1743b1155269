"""Patches and nightlies that no table has: asked of the real index, locked once, and found without it afterwards."""

import re
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import lock_on_demand, lockfile, user_data
from orchestrator.errors import UsageError
from orchestrator.terminal.view import View
from tests.support.heard import Heard


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    catalog.reread()
    yield tmp_path
    monkeypatch.undo()
    catalog.reread()


def pinned(lock: Path, package: str) -> str | None:
    match = re.search(rf"^{package}==(\S+) \\\n    --hash=sha256:[0-9a-f]{{64}}", lock.read_text(), re.MULTILINE)
    return match[1] if match else None


def test_a_patch_is_locked_on_first_use_and_needs_no_index_on_the_second(monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    assert lock_on_demand.provide_locks(["2.3.1"], Heard(said)) == ("2.3.1",)
    [version] = catalog.resolve_versions(["2.3.1"], fewest=1)
    [flavour] = version.on("cpu")
    assert pinned(flavour.lock, "tensorflow-cpu") == "2.3.1"
    assert pinned(flavour.lock, "keras") == version.keras == "2.4.3"
    assert said == [
        "2.3.1: locking it with the requirements of 2.3",
        f"2.3.1: locked for Python 3.7 in {flavour.lock}",
    ]
    monkeypatch.setenv("PATH", "/nowhere")
    assert lock_on_demand.provide_locks(["2.3.1", "1.14"], Heard(said)) == ("2.3.1", "1.14")
    assert len(said) == 2


@pytest.mark.parametrize("number", ["1.15.4", "2.0.3"])
def test_a_patch_with_a_source_package_is_locked_to_the_file_that_the_table_knows(number: str):
    lock_on_demand.provide_locks([number], View())
    [flavour] = catalog.resolve_versions([number], fewest=1)[0].on("cpu")
    known = catalog.builtin_catalogue().source["gast"]
    assert [pin.hashes for pin in lockfile.read_lock(flavour.lock) if pin.name == "gast"] == [(known.sha256,)]
    assert "gast" not in catalog.forbid_builds(flavour.lock).partition("=")[2].split(",")


def test_a_patch_without_a_wheel_for_its_releases_python_takes_another():
    lock_on_demand.provide_locks(["2.12.0"], View())
    [version] = catalog.resolve_versions(["2.12.0"], fewest=1)
    assert version.on("cpu")[0].python.number == "3.11"


def test_a_patch_that_the_index_does_not_have_is_told_and_leaves_nothing_behind():
    with pytest.raises(UsageError, match=r"2.3.99: the index has no TensorFlow .*; 2.3.4 of the same release is"):
        lock_on_demand.provide_locks(["2.3.99"], View())
    assert not user_data.find_user_table().exists()


def test_the_newest_nightly_is_found_and_a_day_of_long_ago_takes_the_oldest():
    known = lock_on_demand.nightlies()
    assert known
    said: list[str] = []
    _, newest = lock_on_demand.find_nearest_nightly("nightly", known, Heard(said))
    _, oldest = lock_on_demand.find_nearest_nightly("nightly-20200101", known, Heard(said))
    assert lock_on_demand.date_of(newest) == max(map(lock_on_demand.date_of, (one for one in known if ".dev" in one)))
    assert lock_on_demand.date_of(oldest) < lock_on_demand.date_of(newest)
    assert len(said) == 1
