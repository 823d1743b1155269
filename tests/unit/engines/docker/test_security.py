"""Engines that confine containers differently: each works or is refused before anything is built."""

import os
from pathlib import Path

import pytest

from orchestrator.errors import EngineUnavailable
from tests.unit.engines.docker.scenes import Client, check, make

pytestmark = pytest.mark.usefixtures("outside")

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


@pytest.mark.parametrize(
    ("uid", "user"),
    [
        (1000, "1000:1000"),
        pytest.param(
            0, "65532:65532", marks=pytest.mark.skipif(os.getuid() != 0, reason="not root: it hands folders over")
        ),
    ],
)
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
