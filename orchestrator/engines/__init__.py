"""Where versions live and workers run: one Protocol, one file and one entry in ENGINES per engine."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from orchestrator.engines.channel import Channel
from orchestrator.engines.setting import BuildLog
from orchestrator.errors import UsageError
from orchestrator.gpu import Gpu
from orchestrator.model import EnvironmentFacts, GpuRequest, Isolation, LargeFile
from orchestrator.versions import Version

# What one version takes on the disk, installed; images and environments of 1.14, 2.0 and 2.13 took 0.9 to 1.7 GB.
CPU_GB, GPU_GB = 1.7, 6.0


def check_cpus(asked: Collection[int] | None, usable: Collection[int]) -> None:
    if absent := sorted(set(asked or ()) - set(usable)):
        raise UsageError(
            f"--cpuset: CPU {', '.join(map(str, absent))} cannot be used here; "
            f"those that can are {', '.join(map(str, sorted(usable)))}"
        )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """What the user may say about environments, and what each worker may use of the machine."""

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
        """That the CPUs and the memory asked for are there; raises UsageError."""
        check_cpus(self.cpus, cpus)
        if self.memory_mb and self.memory_mb > memory_mb:
            raise UsageError(f"--memory: {self.memory_mb} MB is more than the {memory_mb} MB that there are")


@dataclass(frozen=True, kw_only=True)
class WorkerPlace:
    """What a worker is started with, in paths of this machine."""

    run: str
    results: Path
    log: Path
    own_workloads: Path | None
    # Files of that folder which have to be mounted into it.
    large: tuple[LargeFile, ...] = ()


@dataclass(frozen=True)
class Started:
    """A worker's channel, and the paths that its `hello` must name, as the worker sees them."""

    channel: Channel
    folders: tuple[str, ...]
    results: str


@dataclass(frozen=True)
class Outlook:
    """What preparing a version would do; `download` is what would be fetched first, in words."""

    state: Literal["ready", "to build", "impossible"]
    text: str
    download: str = ""

    def __str__(self) -> str:
        return f"{self.text}; {self.download}" if self.download else self.text


class Environment(Protocol):
    """A version made ready to be measured."""

    @property
    def facts(self) -> EnvironmentFacts: ...

    def start(self, place: WorkerPlace, stream: Path) -> Started:
        """Starts a worker; raises EnvironmentFailed, or EngineUnavailable if the engine itself is gone."""


class Engine(Protocol):
    def check(self) -> str:
        """One line about the engine; raises EngineUnavailable before any work if it cannot do what was asked."""

    def outlook(self, version: Version) -> Outlook:
        """Return what `prepare` would do, as far as that can be seen without doing it."""

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        """Builds or installs the version unless that was done before; raises EnvironmentFailed."""

    def storage(self) -> tuple[str, Path] | None:
        """Return what the engine keeps and the folder it keeps it in, if that can be seen from here."""

    def close(self) -> None:
        """Frees what the engine holds; never raises."""


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """An engine as the command line offers it."""

    title: str
    make: Callable[[EngineOptions], Engine]
    # What a replicate may have for itself, where forks are not wanted.
    isolation: Isolation
    gpus: bool = False
    # Whether workers are children of another program: this process's CPUs do not bind them, its folders not reach them.
    detached: bool = False


def _docker(options: EngineOptions) -> Engine:
    # Imported here: docker's client is slow to import and not needed where virtual environments are used.
    from orchestrator.engines.docker import DockerEngine

    return DockerEngine(options)


def _venv(options: EngineOptions) -> Engine:
    from orchestrator.engines.venv import VenvEngine

    return VenvEngine(options)


# In the order in which `auto` tries them.
ENGINES: dict[str, EngineInfo] = {
    "docker": EngineInfo(title="Docker", make=_docker, isolation="container", gpus=True, detached=True),
    "venv": EngineInfo(title="virtual environments", make=_venv, isolation="process"),
}
