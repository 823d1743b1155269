"""Targets without TensorFlow: which release of a backend they get, and what is said of those that cannot be."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.catalog import backends, changed, variables
from orchestrator.catalog.backends import find_links, pin_backend
from orchestrator.catalog.targets import parse_target
from orchestrator.errors import UsageError
from tests.support import packages

RELEASES = {"jax": ["0.9.0", "0.10.2"], "torch": ["2.12.0", "2.13.0+cpu", "2.15.0"]}
JAX, TORCH = "keras==3.15.1 backend=jax", "keras==3.15.1 backend=torch"


@pytest.fixture(autouse=True)
def releases(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The releases that the index has."""
    known = dict(RELEASES)
    monkeypatch.setattr(backends, "list_final_releases", lambda package, python: known[package])
    return known


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        (JAX, "keras==3.15.1 jax==0.10.2 backend=jax"),
        (f"{JAX} jax==0.9.0", "keras==3.15.1 jax==0.9.0 backend=jax"),
        # Newer builds of PyTorch on the index bring CUDA along.
        (TORCH, "keras==3.15.1 torch==2.13.0+cpu backend=torch"),
        (f"{TORCH} torch==2.15.0", "keras==3.15.1 torch==2.15.0 backend=torch"),
    ],
)
def test_a_backend_is_the_newest_build_for_cpus_unless_it_is_pinned(text: str, pinned: str):
    assert str(pin_backend(parse_target(text), "3.11", "cpu")) == pinned


def test_an_index_without_builds_for_cpus_is_told_with_what_helps(releases: dict[str, list[str]]):
    releases["torch"] = ["2.15.0"]
    with pytest.raises(UsageError, match=r"no build of torch for CPUs, whose number ends with \+cpu, for Python 3\.11"):
        pin_backend(parse_target(TORCH), "3.11", "cpu")
    releases["jax"] = []
    with pytest.raises(UsageError, match=r"the index has no release of jax for Python 3\.11"):
        pin_backend(parse_target(JAX), "3.11", "cpu")


def test_a_gpu_is_refused_because_its_build_knows_none():
    with pytest.raises(UsageError, match="the CPU build of jax, which cannot use a GPU: run it without --gpu"):
        pin_backend(parse_target(JAX), "3.11", "gpu")


def test_it_has_no_number_of_tensorflow_and_a_lock_of_its_own():
    one, other = (changed.find_changed(f"{text} as own", "cpu") for text in (JAX, f"{JAX} py=3.12"))
    assert (one.number, one.name) == ("", "own")
    assert one.variables == {variables.BACKEND: "jax"}
    [flavour], [on_other] = one.flavours, other.flavours
    assert flavour.requirements == ("keras==3.15.1", "jax", "pyarrow")
    assert (flavour.python.number, on_other.python.number) == ("3.11", "3.12")
    assert flavour.lock != on_other.lock
    with pytest.raises(UsageError, match=r"py=3.5: tfcompare knows"):
        changed.find_changed(f"{JAX} py=3.5", "cpu")


def test_links_are_those_of_pips_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels https://wheels.example.org/cpu")
    assert {"/wheels", "https://wheels.example.org/cpu"} <= set(find_links())
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert "/wheels" not in find_links()


def test_links_of_a_file_may_have_a_line_each_and_are_seen_from_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pip.conf").write_text("[global]\nfind-links =\n    mine\n    /it's/here\n    $(touch mark)\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert {str(tmp_path / "mine"), "/it's/here"} <= set(find_links())
    assert not (tmp_path / "mark").exists()


@dataclass
class Linked:
    """A folder of wheels that pip's settings name, a lock of two of them, and what is fetched."""

    folder: Path
    digests: dict[str, str]

    def fetch(self, *pins: str) -> tuple[str, list[str]]:
        lock, fetched = self.folder / "lock.txt", self.folder / "fetched"
        lines = (f"{pin} --hash=sha256:{self.digests.get(pin, 64 * '0')}\n" for pin in pins)
        lock.write_text("".join(lines))
        fetched.mkdir()
        return backends.fetch_linked(lock, "3.11", fetched), sorted(path.name for path in fetched.iterdir())


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Linked:
    (tmp_path / "wheels").mkdir()
    made = [packages.wheel(tmp_path / "wheels", "engine", number) for number in ("1.0", "1.0+cpu")]
    digests = {number: hashlib.sha256(path.read_bytes()).hexdigest() for number, path in zip("01", made, strict=True)}
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return Linked(tmp_path, {"engine==1.0": digests["0"], "engine==1.0+cpu": digests["1"]})


def test_a_wheel_of_a_local_build_is_fetched_from_where_pip_is_told_to_look(linked: Linked):
    assert linked.fetch("engine==1.0+cpu") == ("", ["engine-1.0+cpu-py3-none-any.whl"])


def test_what_every_index_has_is_left_to_the_build(linked: Linked):
    assert linked.fetch("engine==1.0") == ("", [])


def test_a_wheel_with_another_digest_is_not_taken(linked: Linked):
    linked.digests["engine==1.0+cpu"] = linked.digests["engine==1.0"]
    missing, fetched = linked.fetch("engine==1.0+cpu")
    assert "DO NOT MATCH THE HASHES" in missing
    assert fetched == []


def test_a_wheel_that_is_nowhere_is_told(linked: Linked):
    missing, fetched = linked.fetch("engine==2.0+cpu")
    assert "No matching distribution found for engine==2.0+cpu" in missing
    assert fetched == []


def test_the_login_of_a_page_is_not_told(linked: Linked, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "http://me:extremely-secret@127.0.0.1:1/wheels")
    monkeypatch.setenv("PIP_RETRIES", "0")
    missing, fetched = linked.fetch("engine==1.0+cpu")
    assert "No matching distribution found" in missing
    assert "secret" not in missing
    assert fetched == []


@pytest.mark.parametrize(("value", "is_noted"), [("jax", True), ("tensorflow", False), (None, False)])
def test_the_backend_of_the_shell_is_not_passed_on(value: str | None, is_noted: bool, monkeypatch: pytest.MonkeyPatch):
    if value is None:
        monkeypatch.delenv(variables.BACKEND, raising=False)
    else:
        monkeypatch.setenv(variables.BACKEND, value)
    assert variables.BACKEND not in variables.find_of_tensorflow()
    for inherited in (True, False):
        assert ("backend=jax" in variables.note_ignored(inherited)) == is_noted
