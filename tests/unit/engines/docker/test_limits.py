"""Workers use CPUs that are online and that the caller may use."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

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
