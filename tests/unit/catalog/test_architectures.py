"""On another architecture than the table's, versions are locked on first use, and those without wheels are named."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import architectures, changed, lock_on_demand, locking, user_data, uv, wheel
from orchestrator.catalog.uv import Unresolved
from orchestrator.catalog.version import Version
from orchestrator.errors import UsageError
from orchestrator.machine import supported
from orchestrator.terminal.view import View
from tests.support.heard import Heard


def become(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr(supported.platform, "machine", lambda: machine)
    catalog.reread()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    become(monkeypatch, "x86_64")
    yield tmp_path
    monkeypatch.undo()
    catalog.reread()


@pytest.fixture
def resolver(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[locking.Lock]:
    """Stands in for uv: it has everything but 2.12 on Python 3.11, and nothing of 2.14."""
    asked: list[locking.Lock] = []

    def resolve(lock: locking.Lock, *options: object) -> str:
        asked.append(lock)
        if "tensorflow==2.14.1" in lock.requirements or (lock.python, lock.requirements[0][-4:]) == ("3.11", "12.1"):
            raise Unresolved("No solution found: there are no such wheels")
        return f"{locking.WRITTEN_BY}{lock.command}\nkeras==3.0 --hash=sha256:{'0' * 64}\n"

    monkeypatch.setattr(locking, "resolve_lock", resolve)
    return asked


def provide(*texts: str) -> tuple[dict[str, Version], list[str]]:
    said: list[str] = []
    names = changed.provide_targets(texts, Heard(said), "cpu")
    return {version.number: version for version in changed.resolve_targets(names, 1, "cpu")}, said


def test_on_the_usual_architecture_nothing_is_locked(resolver: list[locking.Lock]):
    found, said = provide("2.9..2.16", "1.14")
    assert (resolver, said) == ([], [])
    assert all(flavour.lock.is_relative_to(catalog.LOCKS) for each in found.values() for flavour in each.flavours)
    assert all(architectures.find_lacking_architecture(version, "gpu") is None for version in found.values())
    assert not user_data.locks().exists()


@pytest.mark.parametrize("machine", ["aarch64", "arm64"])
def test_a_version_of_the_table_is_locked_once_for_the_other(
    resolver: list[locking.Lock], monkeypatch: pytest.MonkeyPatch, machine: str
):
    become(monkeypatch, machine)
    found, said = provide("2.13", "2.21")
    assert [each for each in said if "locking" in each] == [
        "2.13.0: locking it for aarch64", "2.21.0: locking it for aarch64",
    ]  # fmt: skip
    [flavour] = found["2.13.0"].flavours
    assert flavour.lock == user_data.locks() / "2.13.0-cpu-py3.11-aarch64.txt"
    assert flavour.lock.exists()
    # The package for CPUs alone has no such wheels.
    assert "tensorflow==2.13.0" in flavour.requirements
    assert not any(each.startswith("tensorflow-cpu") for lock in resolver for each in lock.requirements)
    assert all(architectures.find_lacking_architecture(version, "cpu") is None for version in found.values())
    assert provide("2.13", "2.21") == (found, [])
    assert len(resolver) == 2


def test_a_python_of_which_no_build_could_be_downloaded_comes_last(
    resolver: list[locking.Lock], monkeypatch: pytest.MonkeyPatch
):
    become(monkeypatch, "aarch64")
    found, _ = provide("2.10", "2.11")
    assert [version.flavours[0].python.number for version in found.values()] == ["3.8", "3.8"]
    assert "pyarrow==17.0.0" in resolver[0].requirements


def test_a_version_that_cannot_be_locked_costs_no_other_one(
    resolver: list[locking.Lock], monkeypatch: pytest.MonkeyPatch
):
    become(monkeypatch, "aarch64")
    found, said = provide("2.9..2.14")
    obstacles = {number: architectures.find_lacking_architecture(version, "cpu") for number, version in found.items()}
    assert obstacles.pop("2.9.3") == (
        "TensorFlow has wheels for Linux on aarch64 from 2.10 on",
        "name newer ones, or use x86-64",
    )
    assert obstacles.pop("2.14.1") == (
        "it could not be locked for Linux on aarch64",
        "check the network, and run again",
    )
    assert set(obstacles.values()) == {None}
    assert found["2.12.1"].flavours[0].python.number != "3.11"
    assert found["2.9.3"].flavours == ()
    assert "warning: 2.14.1 cannot be locked for aarch64:\nNo solution found: there are no such wheels" in said


def test_there_is_no_cuda_for_the_other(resolver: list[locking.Lock], monkeypatch: pytest.MonkeyPatch):
    become(monkeypatch, "aarch64")
    assert lock_on_demand.provide_locks(("2.16",), View(), device="gpu") == ("2.16",)
    assert resolver == []
    [version] = catalog.resolve_versions(("2.16",), fewest=1)
    assert version.on("gpu") == ()
    assert architectures.find_lacking_architecture(version, "gpu") == (
        "TensorFlow has no wheels with CUDA for Linux on aarch64",
        "leave --gpu out, or measure on x86-64",
    )


def test_targets_and_patches_have_locks_of_their_own(resolver: list[locking.Lock], monkeypatch: pytest.MonkeyPatch):
    before = locking.Lock(Path(), "", "3.11", ("a==1",)).inputs
    become(monkeypatch, "aarch64")
    assert locking.Lock(Path(), "", "3.11", ("a==1",)).inputs != before
    monkeypatch.setattr(locking.Lock, "is_current", lambda lock: lock.path.exists())
    found, _ = provide("2.16 keras=2 as keras-2")
    assert re.fullmatch(r"2\.16\.2-cpu-py3\.11-[0-9a-f]{12}-aarch64\.txt", found["2.16.2"].flavours[0].lock.name)
    found, _ = provide("2.13.1 py=3.9", "2.15.0")
    assert [version.flavours[0].lock.name for version in found.values()] == [
        "2.13.1-cpu-py3.9-aarch64.txt",
        "2.15.0-cpu-py3.11-aarch64.txt",
    ]


def test_uv_resolves_for_this_machine(folder: Path, monkeypatch: pytest.MonkeyPatch):
    for machine, name in (("x86_64", "x86_64"), ("arm64", "aarch64")):
        become(monkeypatch, machine)
        assert uv.target_arguments("3.11")[-1] == f"{name}-manylinux_2_28"


def test_nightlies_are_those_of_the_package_for_all_architectures(folder: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    monkeypatch.setattr(lock_on_demand, "list_releases", lambda package, python: asked.append(package) or [])
    lock_on_demand.nightlies()
    become(monkeypatch, "aarch64")
    lock_on_demand.nightlies()
    assert asked == ["tf-nightly", "tf-nightly-cpu", "tf-nightly"]


@pytest.mark.parametrize(("machine", "fits"), [("x86_64", "x86_64"), ("aarch64", "aarch64"), ("arm64", "aarch64")])
def test_a_wheel_is_for_this_machine(folder: Path, monkeypatch: pytest.MonkeyPatch, machine: str, fits: str):
    become(monkeypatch, machine)
    for built_for in ("x86_64", "aarch64"):
        path = folder / f"tensorflow-2.15.0-cp311-cp311-manylinux_2_17_{built_for}.whl"
        path.write_bytes(b"")
        # One for another machine is refused by its name; this one because it is empty.
        expected = "cannot be read as a wheel" if built_for == fits else f"targets run on Linux on {fits}$"
        with pytest.raises(UsageError, match=expected):
            wheel.read_wheel(path)


def test_the_real_machine_is_known():
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    assert supported.find_architecture().name == machine
