"""Machines with stand-ins for the schedulers, and the commands called on them."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.support.commands import called
from tests.support.stand_ins import CRONTAB, SYSTEMCTL, Machine


@pytest.fixture(autouse=True)
def workers_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a start of workers take no time, so that the number of visits in a round is always 1."""
    monkeypatch.setattr("orchestrator.measure.workers.time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def call(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    def call(*words: str) -> tuple[int, str, str]:
        code = called(monkeypatch, "nightly", *words)
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.fixture
def with_systemd(machine):
    machine.has("systemctl", SYSTEMCTL)
    return machine


@pytest.fixture
def with_cron(machine):
    machine.has("crontab", CRONTAB)
    machine.set(REFUSED="")
    return machine
