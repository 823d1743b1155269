"""Threads that start workers at the same time have a client each, and connections that fail are closed."""

import gc
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Thread
from threading import enumerate as enumerate_threads
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.engines.docker import client
from orchestrator.engines.docker.client import Clients, connect_engine
from orchestrator.engines.docker.engine import DockerEnvironment
from orchestrator.errors import EngineUnavailable
from orchestrator.options import EngineOptions
from tests.support.builders import environment_facts

SERVER = "engine in trouble"
FACTS = environment_facts(version="2.0.0", kind="docker", identity="sha256:1", lock="l", python="3.7", details={})


def test_an_environment_that_two_threads_start_has_a_client_for_each(monkeypatch: pytest.MonkeyPatch):
    closed: list[Any] = []

    def connect() -> Any:
        made = SimpleNamespace()
        made.close = lambda: closed.append(made)
        return made

    monkeypatch.setattr(client, "connect_engine", connect)
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


def listen(path: Path, answer: bytes) -> None:
    """Accept one connection at `path` and answer its first request, as an engine in trouble would."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with listener, listener.accept()[0] as client:
            client.recv(65536)
            client.sendall(answer)

    Thread(target=serve, name=SERVER).start()


def refuse(path: Path) -> None:
    """Leave a socket that nobody listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        bound.bind(str(path))


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("prepare", "cause"),
    [
        pytest.param(lambda path: None, "its socket does not exist", id="no socket"),
        pytest.param(refuse, "no engine listens on it", id="nobody listens"),
        pytest.param(lambda path: listen(path, b""), "Connection aborted", id="closed at once"),
        pytest.param(lambda path: listen(path, http("500 Oops", '{"message": "oops"}')), "oops", id="an error"),
        pytest.param(lambda path: listen(path, http("200 OK", '{"ApiVersion": "1.1"}')), "version", id="too old"),
    ],
)
def test_a_connection_that_fails_leaves_no_socket_open(
    prepare: Callable[[Path], None], cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "engine.sock"
    before = open_sockets()
    prepare(path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with pytest.raises(EngineUnavailable, match=cause) as refused:
        connect_engine(timeout_s=10)
    if cause in ("oops", "version"):
        # A connection that brought an answer ends with its client, which the error still refers to.
        del refused
        gc.collect()
    for thread in enumerate_threads():
        if thread.name == SERVER:
            thread.join(10)
    assert open_sockets() == before


def open_sockets() -> set[str]:
    descriptors = (Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    return {target for entry in descriptors if entry.is_symlink() and (target := str(entry.readlink()))[:6] == "socket"}
