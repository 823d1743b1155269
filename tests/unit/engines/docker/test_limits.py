"""Workers use CPUs that are online and that the caller may use, and share memory and processes."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator import contract
from orchestrator.engines.docker import limits
from orchestrator.errors import UsageError
from tests.unit.engines.docker.scenes import Client, check, make

pytestmark = pytest.mark.usefixtures("outside")


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """CPUs 0 to 3 and 8 to 11, and what of them this process may use."""
    (tmp_path / "online").write_text("0-3,8-11\n")
    monkeypatch.setattr(limits, "ONLINE", tmp_path / "online")
    granted = SimpleNamespace(cpus={0, 1, 2, 3, 8, 9, 10, 11})
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: granted.cpus)
    return granted


@pytest.mark.usefixtures("online")
def test_cpus_that_are_offline_are_refused_and_others_are_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    check(Client(cpus=8), monkeypatch, cpus=(8, 11))
    with pytest.raises(UsageError, match="CPU 4 cannot be used here; those that can are 0, 1, 2, 3, 8, 9, 10, 11"):
        check(Client(cpus=8), monkeypatch, cpus=(4,))
    check(Client(cpus=16), monkeypatch, cpus=(4,))


def test_a_worker_keeps_to_the_cpus_that_the_caller_may_use(online: SimpleNamespace, tmp_path: Path):
    client = Client(cpus=8)
    assert make(client, tmp_path)["host_config"]["cpuset_cpus"] is None
    online.cpus = {2, 8}
    assert make(client, tmp_path)["host_config"]["cpuset_cpus"] == "2,8"


@pytest.mark.parametrize("workers", [1, 2, 3, 40])
def test_all_workers_together_leave_some_of_the_machine(tmp_path: Path, workers: int):
    (tmp_path / "pid_max").write_text("32768\n")
    (tmp_path / "threads-max").write_text("191907\n")
    total = 24 * 2**30
    assert 0.89 * total < limits.share_memory(total, workers) * workers <= 0.9 * total
    processes = limits.share_processes(workers, tmp_path)
    assert 0 < processes <= limits.WORKER_TASKS
    assert processes * workers <= 16_384
    (tmp_path / "pid_max").write_text("4194304\n")
    assert limits.share_processes(workers, tmp_path) == min(limits.WORKER_TASKS, 95_953 // workers)
    (tmp_path / "threads-max").write_text("max\n")
    assert limits.share_processes(workers, tmp_path) == limits.share_processes(workers, tmp_path / "nowhere") > 0


def test_a_container_gets_its_share_unless_the_user_says_how_much(tmp_path: Path):
    client = Client()
    alone, third = (make(client, tmp_path, workers=number)["host_config"] for number in (1, 3))
    assert third["mem_limit"] == third["memswap_limit"] == limits.share_memory(2**34, 3)
    assert alone["mem_limit"] == limits.share_memory(2**34, 1)
    assert third["pids_limit"] <= alone["pids_limit"]
    assert third["tmpfs"]["/tmp"].endswith(f",size={third['mem_limit'] // 2}")
    asked = make(client, tmp_path, workers=3, memory_mb=2048)["host_config"]
    assert asked["mem_limit"] == 2**31
    assert {(limit.name, limit.soft, limit.hard) for limit in asked["ulimits"]} == {
        ("fsize", contract.LARGEST_FILE, contract.LARGEST_FILE),
        ("core", 0, 0),
    }
