"""What the machine shows of a death is read from the files in which the kernel tells it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.machine import evidence
from orchestrator.machine.evidence import MemoryMark, describe_full, find_gone_gpus, find_out_of_memory
from orchestrator.machine.gpu import Gpu

RECORD = (
    "oom-kill:constraint=CONSTRAINT_{where},nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/docker/4ff4,"
    "task_memcg=/docker/4ff4,task=python3,pid=24676,uid=65532"
)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 256 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=16", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no right to mount: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_file_system_without_room_is_named(small: Path):
    assert describe_full(small) == ""
    (small / "filler").write_bytes(b"x" * 200 * 1024)
    assert describe_full(small) == f"the file system of {small} is full (56 KB left)"


def test_a_file_system_without_room_for_a_file_is_named(small: Path):
    for number in range(20):
        try:
            (small / f"{number}").touch()
        except OSError:
            break
    assert describe_full(small) == f"the file system of {small} has no room for another file"


def test_a_read_only_file_system_is_named(small: Path):
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    assert describe_full(small) == f"the file system of {small} is read-only"


def test_a_folder_that_is_gone_says_nothing(tmp_path: Path):
    assert describe_full(tmp_path / "gone") == ""


class Kernel:
    """The files of a kernel that counts what it ends for want of memory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vmstat, self.log, self.limit = folder / "vmstat", folder / "kmsg", folder / "memory.failcnt"
        monkeypatch.setattr(evidence, "VMSTAT", self.vmstat)
        monkeypatch.setattr(evidence, "KERNEL_LOG", self.log)
        monkeypatch.setattr(evidence, "_find_limit", lambda pid: self.limit if self.limit.exists() else None)
        self.count(3)

    def count(self, ended: int) -> None:
        self.vmstat.write_text(f"pgfault 1\noom_kill {ended}\n")

    def record(self, where: str, at_s: float) -> None:
        self.log.write_text(f"6,1234,{int(at_s * 1e6)},-;{RECORD.format(where=where)}\n SUBSYSTEM=memory\n")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def test_nothing_that_was_ended_for_want_of_memory_is_certain(kernel: Kernel):
    mark = MemoryMark.now()
    kernel.record("NONE", mark.at_s + 1)
    assert find_out_of_memory(mark) == ("none", "")


@pytest.mark.parametrize(("where", "who"), [("NONE", "machine"), ("MEMCG", "group"), ("CPUSET", "machine")])
def test_the_kernels_record_says_who_ran_out_of_memory(kernel: Kernel, where: str, who: str):
    mark = MemoryMark.now()
    kernel.count(4)
    kernel.record(where, mark.at_s + 1)
    assert find_out_of_memory(mark) == (who, RECORD.format(where=where))


def test_an_earlier_record_is_about_something_else(kernel: Kernel):
    mark = MemoryMark.now()
    kernel.count(4)
    kernel.record("MEMCG", mark.at_s - 100)
    assert find_out_of_memory(mark) == ("machine", "")


@pytest.mark.parametrize(("hits", "who"), [(0, "machine"), (5, "group")])
def test_without_a_record_the_limit_of_its_group_says_it(kernel: Kernel, hits: int, who: str):
    kernel.limit.write_text("0\n")
    mark = MemoryMark.now()
    kernel.limit.write_text(f"{hits}\n")
    kernel.count(4)
    assert find_out_of_memory(mark) == (who, "")


def test_a_kernel_that_does_not_count_leaves_it_open(kernel: Kernel):
    kernel.vmstat.unlink()
    assert find_out_of_memory(MemoryMark.now()) == ("", "")


def test_this_kernel_answers():
    """Of the machine on which the tests run, whichever it is."""
    mark = MemoryMark.now(os.getpid())
    assert mark.ended is None or mark.ended >= 0
    assert find_out_of_memory(mark)[0] in ("none", "", "machine", "group")


def test_gpus_that_the_machine_no_longer_shows_are_gone(monkeypatch: pytest.MonkeyPatch):
    shown = Gpu(0, "GPU-1", "NVIDIA H100", "9.0", "550.54", None, None, None, None)
    monkeypatch.setattr(evidence, "find_gpus", lambda: (shown,))
    assert find_gone_gpus(()) == ()
    assert find_gone_gpus(("GPU-1", "GPU-2")) == ("GPU-2",)
