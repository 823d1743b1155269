"""An engine that keeps what a container was made with."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.docker import container, engine
from orchestrator.engines.docker.engine import DockerEngine
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

    def inspect_image(self, image: str) -> dict[str, Any]:
        return {"Config": {}}

    def create_host_config(self, **options: Any) -> dict[str, Any]:
        return options

    def create_container(self, **options: Any) -> dict[str, str]:
        self.made = options
        return {"Id": "c" * 64}

    def close(self) -> None: ...


def check(client: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    monkeypatch.setattr(engine, "connect_engine", lambda: client)
    return DockerEngine(EngineOptions(**options)).check()


def make(client: Any, tmp_path: Path, **changes: Any) -> dict[str, Any]:
    spec = container.Spec(
        image="i", version="2.0.0", run="r", workloads=tmp_path, own_workloads=None, results=tmp_path, gpu=None,
        **changes,
    )  # fmt: skip
    container.create(client, spec)
    made: dict[str, Any] = client.made
    return made
