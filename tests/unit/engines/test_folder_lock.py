"""A folder's lock has many users or one writer, and programs that a user starts are none of them."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.engines.folder_lock import FolderLock, exclusive, is_locked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "2.13.0-cpu-py3.11-0123456789abcdef"


def test_several_share_it_and_nobody_writes_meanwhile(folder: Path):
    one, two, writer = (FolderLock(folder) for _ in range(3))
    assert one.share()
    assert one.share()
    assert two.share()
    assert not writer.exclude()
    assert not one.exclude()
    two.release()
    assert writer.exclude(), "a refused writer has given its share away"
    assert not one.share()
    assert writer.share()
    assert one.share()
    for lock in (one, two, writer):
        lock.release()
    assert not is_locked(folder)


def test_whether_it_is_locked_is_seen_without_locking_it(folder: Path):
    assert not is_locked(folder)
    lock = FolderLock(folder)
    assert not is_locked(folder), "an open file is no lock"
    lock.share()
    assert is_locked(folder)
    assert is_locked(folder)
    lock.release()
    lock.release()
    assert not is_locked(folder)


def test_a_lock_that_is_dropped_is_released(folder: Path):
    lock = FolderLock(folder)
    assert lock.exclude()
    del lock
    gc.collect()
    assert not is_locked(folder)


def test_the_file_stays_for_those_who_have_it_open(folder: Path):
    lock = FolderLock(folder)
    lock.release()
    assert [path.name for path in folder.parent.iterdir()] == [f"{folder.name}.lock"]


def test_a_program_that_is_started_meanwhile_does_not_hold_it(folder: Path):
    lock = FolderLock(folder)
    assert lock.share()
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    # Even a program that gets every file which may be inherited.
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as program:
        assert program.stdin
        assert program.stdout
        program.stdout.readline()
        files = [os.path.realpath(file) for file in Path(f"/proc/{program.pid}/fd").iterdir()]
        assert not [name for name in files if name.endswith(".lock")]
        lock.release()
        assert not is_locked(folder)
        program.stdin.close()


def test_a_forked_child_that_ends_leaves_the_lock_to_its_parent(folder: Path):
    program = """
import os, sys
from pathlib import Path
from orchestrator.engines.folder_lock import FolderLock, is_locked
folder = Path(sys.argv[1])
lock = FolderLock(folder)
assert lock.share()
if not (child := os.fork()):
    sys.exit()
os.waitpid(child, 0)
assert is_locked(folder)
"""
    subprocess.run([sys.executable, "-c", program, folder], check=True)
    assert not is_locked(folder)


@pytest.fixture
def read_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another user's cache: files there can be read and not written, whoever runs this test."""
    folder.mkdir(parents=True)
    opened: Callable[..., int] = os.open

    def refuse(path: Path, flags: int, *mode: int, **where: int) -> int:
        if flags & (os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *mode, **where)

    monkeypatch.setattr(os, "open", refuse)
    return folder


def test_a_lock_that_can_only_be_read_can_be_shared(read_only: Path):
    # Not by Path.touch, which opens it for writing.
    os.mknod(read_only.with_name(read_only.name + ".lock"), 0o644)
    lock = FolderLock(read_only)
    assert lock.share()
    assert is_locked(read_only)
    lock.release()
    assert not is_locked(read_only)


def test_where_no_lock_can_be_made_there_is_an_error_that_says_why(read_only: Path):
    with pytest.raises(PermissionError, match="Permission denied"):
        FolderLock(read_only)
    assert not is_locked(read_only)


def test_who_wants_it_alone_waits_for_the_others_and_says_so(folder: Path):
    user = FolderLock(folder)
    assert user.share()
    with exclusive(folder, user.release):
        assert is_locked(folder)
    assert not is_locked(folder)


def test_where_no_lock_can_be_had_nobody_waits(tmp_path: Path):
    (tmp_path / "a file").touch()
    with exclusive(tmp_path / "a file" / "folder", lambda: pytest.fail("nobody holds it")):
        pass
