"""Temporary folders are removed with their run, or reported and removed by the next one, and no others are."""

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.engines import scratch
from orchestrator.engines.remains import sweep
from orchestrator.engines.scratch import Scratch, reap_folders
from orchestrator.engines.worker import cgroup
from orchestrator.errors import UsageError
from tests.support.heard import Heard
from tests.support.processes import wait_for_end

OWNER = """
import sys
from orchestrator.engines.scratch import Scratch
made = Scratch()
inner = made.path / "closed" / "inner"
inner.mkdir(parents=True)
(inner / "file").write_text("x")
inner.parent.chmod(0)
print(made.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def start(temporary: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", OWNER], env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def path_of(process: "subprocess.Popen[str]") -> Path:
    assert process.stdout
    return Path(process.stdout.readline().strip())


def test_a_folder_lives_as_long_as_it_is_used(temporary: Path):
    with Scratch() as made:
        assert made.path.parent == temporary
        assert made.path.name.startswith(f"tfcompare-{os.getpid()}-")
        assert reap_folders() == []
        assert made.path.is_dir()
    assert list(temporary.iterdir()) == []
    made.cleanup()


def test_where_nothing_can_be_locked_a_folder_is_an_error_and_none_is_left(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(file: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(UsageError, match=r"cannot be locked; set TMPDIR to another folder"):
        Scratch()
    assert list(temporary.iterdir()) == []


def test_a_folder_of_another_live_process_is_left_alone(temporary: Path):
    with start(temporary) as process:
        path = path_of(process)
        assert reap_folders() == []
        assert path.is_dir()
        process.communicate()
    assert not path.exists(), "it removed the folder itself"


def test_a_folder_whose_owner_was_killed_is_removed_whatever_is_in_it(temporary: Path):
    with start(temporary) as process:
        path = path_of(process)
        process.kill()
        process.communicate()
    assert path.is_dir()
    assert reap_folders() == [path]
    assert list(temporary.iterdir()) == []
    assert reap_folders() == []


def test_what_no_run_has_made_is_left_alone(temporary: Path):
    target = temporary / "precious"
    target.mkdir()
    (temporary / "tfcompare-123-abcdefgh").symlink_to(target)
    (temporary / "tfcompare-123-abcdefg_").write_text("a file")
    for name in ("tfcompare-abcdefgh", "tfcompare-victim-1", "tfcompare-1-abcdefghi", "other-1-abcdefgh"):
        (temporary / name).mkdir()
    before = sorted(temporary.iterdir())
    assert reap_folders() == []
    assert sorted(temporary.iterdir()) == before


def test_a_folder_of_another_user_is_left_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch):
    (temporary / "tfcompare-123-abcdefgh").mkdir()
    monkeypatch.setattr("os.getuid", lambda: os.geteuid() + 1)
    assert reap_folders() == []
    assert len(list(temporary.iterdir())) == 1


def test_a_folder_that_is_taken_before_it_is_locked_is_made_again(monkeypatch: pytest.MonkeyPatch):
    made: list[Path] = []

    def make() -> Path:
        made.append(Path(tempfile.mkdtemp(prefix=f"tfcompare-{os.getpid()}-")))
        if len(made) == 1:
            assert reap_folders() == made
        return made[-1]

    monkeypatch.setattr(scratch, "_make", make)
    with Scratch() as kept:
        assert kept.path == made[1]


def test_what_was_left_is_reported_in_one_line(temporary: Path):
    said: list[str] = []
    engine: Any = SimpleNamespace(sweep=list)
    sweep(engine, Heard(said))
    assert said == []
    (temporary / "tfcompare-123-abcdefgh").mkdir()
    (temporary / "tfcompare-124-abcdefgh").mkdir()
    sweep(SimpleNamespace(sweep=lambda: ["1 container"]), Heard(said))  # type: ignore[arg-type]
    assert said == [
        f"removed what runs that were killed had left behind: 1 container, 2 temporary folders in {temporary}"
    ]


LEAVES = """
import os, time
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    time.sleep(600)
"""


def test_processes_that_began_with_a_folder_that_was_left_are_ended_with_it(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    # Those of runs that other tests kill meanwhile are in groups of the whole machine.
    monkeypatch.setattr(cgroup, "reap_cgroups", lambda: 0)
    (temporary / "tfcompare-123-abcdefgh").mkdir()
    variables = {"TMPDIR": str(temporary / "tfcompare-123-abcdefgh")}
    with subprocess.Popen([sys.executable, "-c", LEAVES], env=variables, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        process.wait()
        said: list[str] = []
        sweep(SimpleNamespace(sweep=list), Heard(said))  # type: ignore[arg-type]
    wait_for_end(pid)
    words = "removed what runs that were killed had left behind: 1 process, 1 temporary folder in "
    assert said == [f"{words}{temporary}"]
