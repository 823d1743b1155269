"""A virtual environment is wanted while a lock of the tables and its own Python lead to its name."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.catalog import user_data
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.folder_lock import FolderLock
from orchestrator.engines.venv import engine as venv
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.engine import MARKER, VenvEngine, environment_path
from orchestrator.engines.venv.interpreters import Interpreter
from orchestrator.errors import EnvironmentFailed
from orchestrator.images import venv_cache
from orchestrator.options import EngineOptions
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
    return environment_path(FLAVOUR, found)


def test_a_run_finds_nothing_in_the_home_of_its_workers_that_another_has_left(
    cache: Path, monkeypatch: pytest.MonkeyPatch
):
    made = make(wanted())
    (made / MARKER).write_text("{}")
    monkeypatch.setattr(venv, "_choose", lambda *_: (FLAVOUR, interpreters.probe(Path(sys.executable).resolve())))
    sizes = []
    for _ in range(2):
        with closing(VenvEngine(EngineOptions())) as engine:
            environment = engine.prepare(VERSIONS[0], BuildLog(cache.parent / "log"))
            assert list(environment.home.iterdir()) == []
            (environment.home / "kept").write_bytes(b"x" * 1_000_000)
            sizes.append(environment.facts.size_bytes)
        assert not environment.home.exists()
    assert sizes[0] == sizes[1]
    (made / "lib.so").write_bytes(b"x" * 1_000_000)
    with closing(VenvEngine(EngineOptions())) as engine:
        grown = engine.prepare(VERSIONS[0], BuildLog(cache.parent / "log")).facts.size_bytes
    assert grown >= sizes[0] + 1_000_000, "what is installed counts"


@pytest.fixture
def shared(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ready environment in a folder that this user cannot write."""
    made = make(wanted())
    (made / MARKER).write_text("{}")
    access, mkdir = os.access, Path.mkdir

    def refuse(place: Path, *args: Any, **kwargs: Any) -> None:
        if place.is_relative_to(cache):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(place))
        mkdir(place, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(os, "access", lambda place, mode: cache not in Path(place).parents and access(place, mode))
    return made


def test_a_ready_environment_in_a_read_only_cache_is_used(shared: Path, monkeypatch: pytest.MonkeyPatch):
    found = interpreters.probe(Path(sys.executable).resolve())
    monkeypatch.setattr(venv, "_choose", lambda version, device: (FLAVOUR, found))
    with closing(VenvEngine(EngineOptions())) as engine:
        environment = engine.prepare(VERSIONS[0], BuildLog(shared.parent / "log"))
        assert environment.path == shared
        assert environment.home.is_dir()
        assert not environment.home.is_relative_to(shared), "it can be written"
        (shared / MARKER).unlink()
        with pytest.raises(EnvironmentFailed, match=r"cannot write .*: Read-only file system"):
            engine.prepare(VERSIONS[0], BuildLog(shared.parent / "log"))
    assert not environment.home.exists()


def test_a_ready_environment_is_used_where_its_lock_can_only_be_read(shared: Path, monkeypatch: pytest.MonkeyPatch):
    shared.with_name(shared.name + ".lock").touch()
    found = interpreters.probe(Path(sys.executable).resolve())
    monkeypatch.setattr(venv, "_choose", lambda version, device: (FLAVOUR, found))
    with closing(VenvEngine(EngineOptions())) as engine:
        assert engine.prepare(VERSIONS[0], BuildLog(shared.parent / "log")).path == shared
        assert venv_cache.in_use(shared), "for its owner"
        (shared / MARKER).unlink()
        with pytest.raises(EnvironmentFailed, match=r"cannot write .*: Read-only file system"):
            engine.prepare(VERSIONS[0], BuildLog(shared.parent / "log"))
    assert not venv_cache.in_use(shared)


def test_a_ready_environment_is_used_where_the_file_system_has_no_locks(cache: Path, monkeypatch: pytest.MonkeyPatch):
    made = make(wanted())
    (made / MARKER).write_text("{}")
    found = interpreters.probe(Path(sys.executable).resolve())
    monkeypatch.setattr(venv, "_choose", lambda version, device: (FLAVOUR, found))

    flock = fcntl.flock

    def refuse(file: int, kind: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{file}")).is_relative_to(cache):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        flock(file, kind)

    monkeypatch.setattr(fcntl, "flock", refuse)
    with closing(VenvEngine(EngineOptions())) as engine:
        assert engine.prepare(VERSIONS[0], BuildLog(cache / "log")).path == made
        (made / MARKER).unlink()
        with pytest.raises(EnvironmentFailed, match="No locks available"):
            engine.prepare(VERSIONS[0], BuildLog(cache / "log"))


def test_another_build_of_the_same_python_is_another_environment_without_an_install(cache: Path):
    made = make(wanted())
    found = interpreters.probe(Path(sys.executable).resolve())
    assert isinstance(found, Interpreter)
    assert found.build == " ".join(sys.version.split())
    (made / MARKER).write_text(json.dumps({"version": "2.13.0", "build": found.build}))
    rebuilt = replace(found, build=found.build + "1")
    assert venv.identify(made, rebuilt) not in (made.name, venv.identify(made, found))
    assert venv.identify(made, found) == made.name
    assert environment_path(FLAVOUR, rebuilt) == made


def test_nothing_is_outdated_where_there_is_nothing(cache: Path):
    assert venv_cache.find_outdated(VERSIONS) == []


def test_the_environment_of_a_lock_is_kept_and_that_of_another_is_not(cache: Path):
    kept = make(wanted())
    other = make(kept.with_name(f"{FLAVOUR.lock.stem}-0123456789abcdef"))
    unknown = make(cache / "9.9.9-cpu-py3.11-0123456789abcdef")
    (cache / "a-file").write_text("")
    assert venv_cache.find_outdated(VERSIONS) == [other, unknown]
    assert venv_cache.find_outdated([]) == sorted([kept, other, unknown])


def test_the_environment_of_a_target_is_kept_with_its_lock(cache: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    lock = user_data.locks() / "2.13.0-cpu-py3.11-0123456789ab.txt"
    lock.parent.mkdir(parents=True)
    lock.write_text("numpy==1.0\n")
    made = make(cache / f"{lock.stem}-0123456789abcdef")
    assert venv_cache.find_outdated(VERSIONS) == []
    lock.unlink()
    assert venv_cache.find_outdated(VERSIONS) == [made]


def test_an_environment_whose_python_is_gone_is_outdated(cache: Path):
    gone = make(wanted(), "/nowhere/python3")
    assert venv_cache.find_outdated(VERSIONS) == [gone]


def test_a_python_that_does_not_answer_now_may_answer_later(cache: Path):
    made = make(cache / "2.13.0-cpu-py3.11-0123456789abcdef", "/bin/false")
    assert made not in venv_cache.find_outdated(VERSIONS)


def test_it_is_removed_whole(cache: Path):
    made = make(cache / "one")
    assert venv_cache.remove_environment(made)
    assert not made.exists()


def test_one_that_is_being_installed_stays(cache: Path):
    made = make(cache / "one")
    with (cache / "one.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert not venv_cache.remove_environment(made)
    assert made.exists()


def test_one_that_was_prepared_stays_and_counts_as_in_use(cache: Path):
    made = make(cache / "one")
    lock = FolderLock(made)
    assert lock.share()
    assert venv_cache.in_use(made)
    assert not venv_cache.remove_environment(made)
    lock.release()
    assert not venv_cache.in_use(made)
    assert venv_cache.remove_environment(made)


def test_a_removal_that_is_cut_short_leaves_nothing_that_looks_ready(cache: Path, monkeypatch: pytest.MonkeyPatch):
    made = make(cache / "one")
    (made / MARKER).write_text("{}")
    monkeypatch.setattr(venv_cache.shutil, "rmtree", lambda *place, **how: None)
    assert not venv_cache.remove_environment(made)
    assert made.exists()
    assert not (made / MARKER).exists()
    assert not venv_cache.in_use(made)


def test_what_another_user_has_made_is_left_alone(cache: Path, monkeypatch: pytest.MonkeyPatch):
    made = make(cache / "one")

    def refuse(path: Path, *how: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as other_user:
        other_user.setattr(os, "open", refuse)
        assert not venv_cache.in_use(made)
        assert not venv_cache.remove_environment(made)
    assert made.exists()


def test_a_link_to_an_environment_elsewhere_is_not_emptied(cache: Path):
    made = make(cache / "one")
    (made / MARKER).write_text("{}")
    (cache / "link").symlink_to(made)
    assert not venv_cache.remove_environment(cache / "link")
    assert (made / MARKER).exists()


def test_one_that_a_worker_runs_in_stays(cache: Path):
    made = make(cache / "one", "/bin/sleep")
    process = subprocess.Popen([made / "bin" / "python", "60"])
    try:
        # A program has no command line yet in the moment that it starts.
        while not venv_cache.in_use(made):
            assert process.poll() is None
        assert not venv_cache.in_use(cache / "on")
        assert not venv_cache.remove_environment(made)
        assert made.exists()
    finally:
        process.kill()
        process.wait()
    assert venv_cache.remove_environment(made)


@pytest.mark.parametrize("by", ["its own path", "a link", "a relative path"])
def test_a_worker_is_seen_by_whatever_path_it_was_started(cache: Path, monkeypatch: pytest.MonkeyPatch, by: str):
    made = make(cache / "one", "/bin/sleep")
    (cache / "link").symlink_to(made.parent)
    monkeypatch.chdir(cache)
    started = {"its own path": made, "a link": cache / "link" / "one", "a relative path": Path("one")}[by]
    process = subprocess.Popen([started / "bin" / "python", "60"])
    try:
        while not (Path("/proc") / str(process.pid) / "cmdline").read_bytes().endswith(b"60\0"):
            assert process.poll() is None
        for path in (made, cache / "link" / "one", Path("one")):
            assert venv_cache.in_use(path), path
    finally:
        process.kill()
        process.wait()
