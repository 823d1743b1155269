"""Engines that confine containers differently: each works or is refused before anything is built."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.engines.docker import container, engine, host_paths, limits
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.options import EngineOptions

USUAL = ["name=seccomp,profile=default"]


class Client:
    """An engine that keeps what a container was made with."""

    def __init__(self, *listed: str, name: str = "Engine", cpus: int = 4) -> None:
        self._info = {"NCPU": cpus, "MemTotal": 2**34, "SecurityOptions": [*USUAL, *listed]}
        self._info |= {"ServerVersion": "28.0", "OperatingSystem": "Debian"}
        self._name = name
        self.api = self
        self.made: dict[str, Any] = {}

    def info(self) -> dict[str, Any]:
        return self._info

    def version(self) -> dict[str, Any]:
        return {"Components": [{"Name": self._name}]}

    def containers(self, **options: Any) -> list[Any]:
        return []

    def create_host_config(self, **options: Any) -> dict[str, Any]:
        return options

    def create_container(self, **options: Any) -> dict[str, str]:
        self.made = options
        return {"Id": "c" * 64}

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in no container, where the engine sees each folder in its place."""
    monkeypatch.setattr(host_paths, "mounts", lambda client: None)
    monkeypatch.setattr(host_paths, "source", lambda path, mounted, *, read_only: path)


def check(client: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    monkeypatch.setattr(engine, "connect", lambda: client)
    return DockerEngine(EngineOptions(**options)).check()


def make(client: Any, tmp_path: Path) -> dict[str, Any]:
    spec = container.Spec(
        image="i", version="2.0.0", run="r", workloads=tmp_path, own_workloads=None, results=tmp_path, gpu=None
    )
    container.create(client, spec)
    made: dict[str, Any] = client.made
    return made


REFUSED = {
    "userns-remap": (Client("name=userns"), 1000, r"remaps users \(userns-remap\).*--engine venv"),
    "Podman": (Client(name="Podman Engine"), 1000, r"is Podman, .*DOCKER_HOST.*--engine venv"),
    "rootless": (Client("name=rootless"), 1000, "is rootless, .*use another engine, or take --engine venv"),
    "rootless, asked by root": (Client("name=rootless"), 0, "is rootless"),
}


@pytest.mark.parametrize(("client", "uid", "words"), REFUSED.values(), ids=REFUSED)
def test_an_engine_on_which_no_worker_can_write_is_refused(
    monkeypatch: pytest.MonkeyPatch, client: Client, uid: int, words: str
):
    monkeypatch.setattr(os, "getuid", lambda: uid)
    with pytest.raises(EngineUnavailable, match=words):
        check(client, monkeypatch)


@pytest.mark.parametrize("listed", [(), ("name=selinux",)])
def test_other_engines_are_taken(monkeypatch: pytest.MonkeyPatch, listed: tuple[str, ...]):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert check(Client(*listed), monkeypatch) == "Docker 28.0 on Debian"


@pytest.mark.parametrize(("uid", "user"), [(1000, "1000:1000"), (0, "65532:65532")])
def test_a_worker_runs_as_the_caller_and_never_as_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uid: int, user: str
):
    monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr(os, "getgid", lambda: uid)
    made = make(Client(), tmp_path)
    assert made["user"] == user
    assert made["host_config"]["security_opt"] == ["no-new-privileges"]


def test_with_selinux_a_worker_may_read_what_is_mounted(tmp_path: Path):
    assert "label=disable" in make(Client("name=selinux"), tmp_path)["host_config"]["security_opt"]


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
