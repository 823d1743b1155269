"""Engines that confine containers differently: what a worker gets on each; which are refused is in test_probe.py."""

import os
from pathlib import Path

import pytest

from tests.unit.engines.docker.scenes import Client, check, make

pytestmark = pytest.mark.usefixtures("outside")


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
