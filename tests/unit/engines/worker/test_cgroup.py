"""Where a cgroup can be made, nothing leaves it: not even what has killed the process that watches over it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.worker import cgroup
from orchestrator.engines.worker.cgroup import Cgroup, find_parents
from tests.support.processes import is_running, read_pids, wait_for_end

TASKS = 50

LEAVES = """
import os, sys, time
sys.stdin.readline()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "a").write("%d\\n" % os.getpid())
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(600)
"""


@pytest.fixture
def process(tmp_path: Path) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen(
        [sys.executable, "-c", LEAVES, str(tmp_path / "pids")], stdin=subprocess.PIPE, start_new_session=True
    ) as started:
        yield started
        started.kill()


@pytest.fixture
def around(process: "subprocess.Popen[bytes]") -> Iterator[Cgroup]:
    made = Cgroup.around(process.pid, TASKS)
    if made is None:
        pytest.skip("no cgroup: this user can make none")
    yield made
    made.end()


def go_on(process: "subprocess.Popen[bytes]", tmp_path: Path) -> int:
    assert process.stdin
    process.stdin.write(b"\n")
    process.stdin.flush()
    return read_pids(tmp_path / "pids")[0]


def test_what_leaves_its_session_ends_with_its_cgroup(around: Cgroup, process, tmp_path: Path):
    daemon = go_on(process, tmp_path)
    process.kill()
    process.wait()
    assert is_running(daemon)
    folders = around.folders
    assert around.end() == 1
    wait_for_end(daemon)
    assert not any(folder.exists() for folder in folders)
    assert around.end() == 0


def test_cgroups_inside_are_removed_as_well(around: Cgroup, process):
    folders = around.folders
    for folder in folders:
        (folder / "inner").mkdir()
        (folder / "inner" / "cgroup.procs").write_text(str(process.pid))
    assert around.end() == 1
    assert not any(folder.exists() for folder in folders)
    process.wait()


def test_a_cgroup_is_ended_by_the_next_run_once_its_owner_has_ended(around: Cgroup, process, tmp_path: Path):
    daemon = go_on(process, tmp_path)
    cgroup.reap_cgroups()
    assert is_running(daemon), "its owner is this process"
    # As the end of its owner does it.
    folders = around.folders
    for group in around._groups:
        os.close(group.lock)
    around._groups = []
    assert cgroup.reap_cgroups() >= 2
    wait_for_end(daemon)
    assert process.wait() == -signal.SIGKILL
    assert not any(folder.exists() for folder in folders)


FORKS = """
import os, sys, time
sys.stdin.readline()
count, why = 0, "nothing"
while count < 300:
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
            os._exit(0)
    except OSError as error:
        why = error.strerror
        break
    count += 1
print(count, why, flush=True)
time.sleep(600)
"""


def test_there_are_no_more_processes_in_it_than_it_allows():
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        made = Cgroup.around(process.pid, TASKS)
        try:
            if made is None or not made.limits_tasks:
                pytest.skip("no cgroup: this user can make none that counts processes")
            assert process.stdin
            assert process.stdout
            process.stdin.write(b"\n")
            process.stdin.flush()
            said = process.stdout.readline().decode()
            assert made.end() == TASKS
        finally:
            if made:
                made.end()
            process.kill()
    assert said == f"{TASKS - 1} Resource temporarily unavailable\n"


COUNTING = "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
HYBRID = "31 1 0:2 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("mounts", "groups", "found"),
    [
        (HYBRID, "8:pids:/x\n0::/a/b\n", ["unified/a/b"]),
        (HYBRID.replace(" / /sys/fs/cgroup/u", " /a /sys/fs/cgroup/u"), "0::/a/b\n", ["unified/b"]),
        (HYBRID.replace(" / /sys/fs/cgroup/u", " /z /sys/fs/cgroup/u"), "0::/a/b\n", []),
        (HYBRID.splitlines()[0], "8:pids:/x\n", []),
        (HYBRID + COUNTING, "8:pids:/x\n0::/a/b\n", ["unified/a/b", "pids/x"]),
        (COUNTING * 2, "8:pids:/x\n", ["pids/x"]),
        (COUNTING, "8:cpu,pids:/x\n", []),
        (COUNTING.replace("rw,pids", "rw,cpu"), "8:cpu:/x\n3:pids:/y\n", []),
        ("", "", []),
    ],
)
def test_the_own_cgroup_is_found_wherever_it_is_mounted(tmp_path: Path, mounts: str, groups: str, found: list[str]):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(mounts)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    assert find_parents(tmp_path) == [tmp_path / "sys/fs/cgroup" / name for name in found]


def test_a_cgroup_that_shares_out_cpus_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(HYBRID)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    parent = tmp_path / "sys/fs/cgroup/unified"
    parent.mkdir(parents=True)
    mkdir = Path.mkdir

    def make(path: Path, *values: object, **more: object) -> None:
        mkdir(path)
        (path / "cgroup.controllers").write_text("cpu io memory")

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(cgroup, "END_S", 0.0)
    assert Cgroup.around(os.getpid(), TASKS, tmp_path) is None
    (folder,) = parent.iterdir()
    assert not (folder / "cgroup.procs").exists()
