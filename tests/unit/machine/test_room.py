"""What is left for processes is read from the kernel's own files, in either version of cgroups."""

import resource
from pathlib import Path

import pytest

from orchestrator.machine.room import Room, read_room


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "proc/meminfo", "MemTotal:  100000 kB\nMemFree: 1 kB\nMemAvailable:  20480 kB\n")
    write(tmp_path, "proc/loadavg", "0.1 0.2 0.3 2/300 4711\n")
    write(tmp_path, "proc/sys/kernel/pid_max", "5000\n")
    write(tmp_path, "proc/sys/kernel/threads-max", "9000\n")
    return tmp_path


@pytest.fixture
def _root_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0)


@pytest.mark.usefixtures("_root_user")
def test_memory_tasks_and_descriptors_are_read(root: Path):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert read_room(root) == Room(memory_mb=20, total_mb=97, tasks=4700, descriptors=hard)


@pytest.mark.usefixtures("_root_user")
@pytest.mark.parametrize(
    ("line", "folder"), [("0::/user.slice/a", "user.slice/a"), ("8:cpu,pids:/batch/1", "pids/batch/1")]
)
def test_a_cgroup_may_allow_fewer(root: Path, line: str, folder: str):
    write(root, "proc/self/cgroup", f"9:name=systemd:/x\n{line}\n")
    write(root, f"sys/fs/cgroup/{folder}/pids.current", "40\n")
    write(root, f"sys/fs/cgroup/{folder}/pids.max", "max\n")
    assert read_room(root).tasks == 4700
    write(root, f"sys/fs/cgroup/{folder}/pids.max", "100\n")
    assert read_room(root).tasks == 60


def test_a_users_limit_counts_unless_the_user_is_root(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("resource.getrlimit", lambda which: (1000, 2000))
    monkeypatch.setattr("os.getuid", lambda: 1000)
    assert read_room(root).tasks == 700
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert read_room(root).tasks == 4700


def test_a_system_that_says_nothing_limits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("resource.getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert read_room(tmp_path) == Room()
