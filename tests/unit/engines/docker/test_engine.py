"""Threads that start workers at the same time have a client each."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.engines.docker import engine
from orchestrator.engines.docker.engine import Clients, DockerEnvironment
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions

FACTS = EnvironmentFacts(version="2.0.0", kind="docker", identity="sha256:1", lock="l", python="3.7", details={})


def test_an_environment_that_two_threads_start_has_a_client_for_each(monkeypatch: pytest.MonkeyPatch):
    closed: list[Any] = []

    def connect() -> Any:
        made = SimpleNamespace()
        made.close = lambda: closed.append(made)
        return made

    monkeypatch.setattr(engine, "connect", connect)
    clients, both = Clients(), Barrier(2)
    environment = DockerEnvironment(clients, FACTS, EngineOptions())

    def start(arm: str) -> Any:
        both.wait(10)
        assert environment.client is environment.client
        return environment.client

    with ThreadPoolExecutor(2) as pool:
        one, control = pool.map(start, ("2.0.0", "2.0.0 (control)"))
    assert one is not control
    clients.close()
    assert {id(client) for client in closed} == {id(one), id(control)}
