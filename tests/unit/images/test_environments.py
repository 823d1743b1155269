"""A virtual environment is wanted while a lock of the tables and its own Python lead to its name."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.engines import interpreters
from orchestrator.engines.interpreters import Interpreter
from orchestrator.engines.venv import folder_of
from orchestrator.images import environments
from tests.unit.images.scenes import flavour, version

FLAVOUR = flavour("2.13.0")
VERSIONS = [version("2.13.0")]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path))
    return tmp_path / "tfcompare" / "environments"


def make(path: Path, python: str | None = None) -> Path:
    """An environment with this test's Python, or with a link to another."""
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to(python or Path(sys.executable).resolve())
    return path


def wanted() -> Path:
    """Where the lock of 2.13.0 leads with this test's Python."""
    found = interpreters.probe(Path(sys.executable).resolve())
    assert isinstance(found, Interpreter)
    return folder_of(FLAVOUR, found)


def test_nothing_is_outdated_where_there_is_nothing(cache: Path):
    assert environments.outdated(VERSIONS) == []


def test_the_environment_of_a_lock_is_kept_and_that_of_another_is_not(cache: Path):
    kept = make(wanted())
    other = make(kept.with_name(f"{FLAVOUR.lock.stem}-0123456789abcdef"))
    unknown = make(cache / "9.9.9-cpu-py3.11-0123456789abcdef")
    (cache / "a-file").write_text("")
    assert environments.outdated(VERSIONS) == [other, unknown]
    assert environments.outdated([]) == sorted([kept, other, unknown])


def test_an_environment_whose_python_is_gone_is_outdated(cache: Path):
    gone = make(wanted(), "/nowhere/python3")
    assert environments.outdated(VERSIONS) == [gone]


def test_a_python_that_does_not_answer_now_may_answer_later(cache: Path):
    made = make(cache / "2.13.0-cpu-py3.11-0123456789abcdef", "/bin/false")
    assert made not in environments.outdated(VERSIONS)


def test_its_size_is_what_it_takes_on_the_disk(cache: Path):
    made = make(cache / "one")
    (made / "data").write_bytes(os.urandom(100_000))
    (made / "same").hardlink_to(made / "data")
    assert 100_000 <= environments.size(made) < 200_000


def test_it_is_removed_whole(cache: Path):
    made = make(cache / "one")
    assert environments.remove(made)
    assert not made.exists()


def test_one_that_is_being_installed_stays(cache: Path):
    made = make(cache / "one")
    with (cache / "one.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert not environments.remove(made)
    assert made.exists()


def test_one_that_a_worker_runs_in_stays(cache: Path):
    made = make(cache / "one", "/bin/sleep")
    process = subprocess.Popen([made / "bin" / "python", "60"])
    try:
        # A program has no command line yet in the moment that it starts.
        while not environments.in_use(made):
            assert process.poll() is None
        assert not environments.in_use(cache / "on")
        assert not environments.remove(made)
        assert made.exists()
    finally:
        process.kill()
        process.wait()
    assert environments.remove(made)
