"""Where versions are installed and workers run: one Protocol, one file per engine, one line per engine in ENGINES."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from orchestrator.engines.channel import Channel
from orchestrator.engines.setting import BuildLog
from orchestrator.errors import UsageError
from orchestrator.gpu import Gpu
from orchestrator.model import EngineName, EnvironmentFacts, GpuRequest, LargeFile
from orchestrator.versions import Version


def check_cpus(asked: Collection[int] | None, usable: Collection[int]) -> None:
    if absent := sorted(set(asked or ()) - set(usable)):
        raise UsageError(
            f"--cpuset: CPU {', '.join(map(str, absent))} cannot be used here; "
            f"those that can are {', '.join(map(str, sorted(usable)))}"
        )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The user's settings for environments, and what each worker may use of the machine."""

    gpu: bool = False
    gpu_request: GpuRequest = "runtime"
    # As they were named; and, once they were found, what the names stand for. Without cards all that the engine gives.
    gpus: tuple[str, ...] = ()
    cards: tuple[Gpu, ...] = ()
    exclusive: bool = False
    force: bool = False
    base: str | None = None
    ca_bundle: Path | None = None
    # There may be a password in it.
    index_url: str | None = field(default=None, repr=False)
    wheelhouse: Path | None = None
    # Whether a Python that this machine lacks may be downloaded.
    python_downloads: bool = True
    cpus: tuple[int, ...] | None = None
    memory_mb: int | None = None

    def check_limits(self, cpus: Collection[int], memory_mb: int) -> None:
        """Raise UsageError unless the requested CPUs and memory exist."""
        check_cpus(self.cpus, cpus)
        if self.memory_mb and self.memory_mb > memory_mb:
            raise UsageError(f"--memory: {self.memory_mb} MB is more than the {memory_mb} MB that there are")


@dataclass(frozen=True, kw_only=True)
class WorkerPlace:
    """The folders and files that a worker is started with, as paths of this machine."""

    run: str
    results: Path
    log: Path
    own_workloads: Path | None
    # Files of that folder which have to be mounted into it.
    large: tuple[LargeFile, ...] = ()


@dataclass(frozen=True)
class Started:
    """A worker's channel, and the paths that its `hello` must contain, as the worker sees them."""

    channel: Channel
    folders: tuple[str, ...]
    results: str


@dataclass(frozen=True)
class Outlook:
    """The work needed to prepare a version; `download` describes what would be downloaded first."""

    state: Literal["ready", "to build", "impossible"]
    text: str
    download: str = ""

    def __str__(self) -> str:
        return f"{self.text}; {self.download}" if self.download else self.text


class Environment(Protocol):
    """A version that is ready to be measured."""

    @property
    def facts(self) -> EnvironmentFacts: ...

    def start(self, place: WorkerPlace, stream: Path) -> Started:
        """Start a worker; raise EnvironmentFailed, or EngineUnavailable if the engine itself is gone."""


class Engine(Protocol):
    def check(self) -> str:
        """Return one line about the engine; raise EngineUnavailable before any work if it cannot do what was asked."""

    def outlook(self, version: Version) -> Outlook:
        """Return what `prepare` would do, as far as that can be seen without doing it."""

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        """Build or install the version unless that was done before; raise EnvironmentFailed if it fails."""

    def close(self) -> None:
        """Free what the engine holds; never raise."""


def engines() -> Mapping[EngineName, Callable[[EngineOptions], Engine]]:
    # Imported here: docker's client is slow to import and not needed where virtual environments are used.
    from orchestrator.engines.docker import DockerEngine
    from orchestrator.engines.venv import VenvEngine

    return {"docker": DockerEngine, "venv": VenvEngine}
