"""Engines, which install versions and run workers: a common Protocol, and one entry in ENGINES per engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from orchestrator.model import EnvironmentFacts, Isolation, LargeFile
from orchestrator.options import DOCKER, VENV, EngineOptions

# Every command imports this module for the names of the engines in --help, and only runs need these imports.
if TYPE_CHECKING:
    from orchestrator.catalog.version import Version
    from orchestrator.engines.build_log import BuildLog
    from orchestrator.engines.layers import Layer, Uv
    from orchestrator.engines.worker.channel import Channel

# An installed version takes this much disk; images and environments of 1.14, 2.0 and 2.13 took 0.9 to 1.7 GB.
CPU_GB, GPU_GB = 1.7, 6.0
# A build reads the first of these folders, and leaves a wheel in the second.
SOURCE, WHEELS = "source", "wheels"
# All files of a wheel have this time, so that the same source makes the same wheel.
BUILD_TIME = {"SOURCE_DATE_EPOCH": "315532800"}
# A worker and all that it starts may have this many processes and threads, if they can be limited.
WORKER_TASKS = 8192


@dataclass(frozen=True, kw_only=True)
class WorkerPaths:
    """The folders and files that a worker is started with, as paths of this machine."""

    run: str
    results: Path
    log: Path
    own_workloads: Path | None
    # All workers of a target keep the code that XLA compiles in this folder.
    xla_code: Path | None = None
    # These files have to be mounted into `own_workloads`.
    large: tuple[LargeFile, ...] = ()
    # This seeds Python's hashes.
    seed: int = 0
    # This many workers exist at the same time, including this one.
    workers: int = 1
    # The keys are workloads that require more packages than the target has.
    layers: Mapping[str, "Layer"] = field(default_factory=dict)


@dataclass(frozen=True)
class StartedWorker:
    """A worker's channel, and the paths that its `hello` must contain, as the worker sees them.

    `tensorflow` is the version that its TensorFlow has to report, and `remedy` says what to do if it reports another.
    """

    channel: "Channel"
    folders: tuple[str, ...]
    results: str
    tensorflow: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Outlook:
    """The work needed to prepare a version; `download` describes what would be downloaded first.

    `advice` says what would make it possible, if that is unusual. `detail` is the message of another program.
    """

    state: Literal["ready", "to build", "impossible"]
    text: str
    download: str = ""
    advice: str = ""
    detail: str = ""

    def __str__(self) -> str:
        text = f"{self.text} ({self.detail})" if self.detail else self.text
        return f"{text}; {self.download}" if self.download else text


class Environment(Protocol):
    """A version that is ready to be measured."""

    @property
    def facts(self) -> EnvironmentFacts: ...

    @property
    def uv(self) -> "Uv":
        """Return the uv that installs the packages that workloads require and the version lacks."""

    def start(self, paths: WorkerPaths, stream: Path) -> StartedWorker:
        """Start a worker; raise EnvironmentFailed, or EngineUnavailable if the engine itself is gone."""

    def build(self, folder: Path, log: "BuildLog") -> None:
        """Build a wheel of the package in `folder`, without an index; raise EnvironmentFailed if that fails.

        With Docker, the build sees nothing but that folder. Without it, it has all rights of the user.
        """


class Engine(Protocol):
    def check(self) -> str:
        """Return one line about the engine; raise EngineUnavailable before any work if it cannot do what was asked."""

    def sweep(self) -> list[str]:
        """Remove what killed runs have left in the engine, and return what it was, e.g. `2 containers`."""

    def outlook(self, version: "Version") -> Outlook:
        """Return what `prepare` would do, as far as that can be seen without doing it."""

    def prepare(self, version: "Version", log: "BuildLog") -> Environment:
        """Build or install the version unless that was done before; raise EnvironmentFailed if it fails."""

    def storage(self) -> tuple[str, Path] | None:
        """Return what the engine keeps and the folder that holds it, or None if the folder cannot be seen here."""

    def close(self) -> None:
        """Free what the engine holds; never raise."""


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """An engine as the command line offers it."""

    title: str
    make: Callable[[EngineOptions], Engine]
    # Each replicate gets its own container or process if forks are not wanted.
    isolation: Isolation
    # Detached workers are children of another program: they are not bound by this process's CPUs and do not see its
    # folders.
    detached: bool = False
    # A worker may have this many processes and threads, if the engine limits them.
    tasks: int | None = None


def _docker(options: EngineOptions) -> Engine:
    # docker's client is slow to import, and virtual environments do not need it.
    from orchestrator.engines.docker.engine import DockerEngine

    return DockerEngine(options)


def _venv(options: EngineOptions) -> Engine:
    from orchestrator.engines.venv.engine import VenvEngine

    return VenvEngine(options)


AUTO = "auto"
# `auto` tries them in this order.
ENGINES: dict[str, EngineInfo] = {
    DOCKER: EngineInfo(title="Docker", make=_docker, isolation="container", detached=True, tasks=WORKER_TASKS),
    VENV: EngineInfo(title="virtual environments", make=_venv, isolation="process", tasks=WORKER_TASKS),
}
