"""Where versions are installed and workers run: one Protocol, one file and one entry in ENGINES per engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from orchestrator.model import EnvironmentFacts, Isolation, LargeFile
from orchestrator.options import DOCKER, VENV, EngineOptions

# Every start needs the names of the engines, for --help, and only a run needs what engines work with.
if TYPE_CHECKING:
    from orchestrator.catalog.version import Version
    from orchestrator.engines.build_log import BuildLog
    from orchestrator.engines.layers import Layer, Uv
    from orchestrator.engines.worker.channel import Channel

# What one version takes on the disk, installed; images and environments of 1.14, 2.0 and 2.13 took 0.9 to 1.7 GB.
CPU_GB, GPU_GB = 1.7, 6.0
# The processes and threads of a worker and all that it starts, where they can be limited.
WORKER_TASKS = 8192


@dataclass(frozen=True, kw_only=True)
class WorkerPaths:
    """The folders and files that a worker is started with, as paths of this machine."""

    run: str
    results: Path
    log: Path
    own_workloads: Path | None
    # Files of `own_workloads` which have to be mounted into it.
    large: tuple[LargeFile, ...] = ()
    # Of Python's hashes.
    seed: int = 0
    # How many workers there are at once, this one included.
    workers: int = 1
    # By workload, for those that require more packages than a target has.
    layers: Mapping[str, "Layer"] = field(default_factory=dict)


@dataclass(frozen=True)
class Started:
    """A worker's channel, and the paths that its `hello` must contain, as the worker sees them.

    `tensorflow` is the number that its TensorFlow has to state, and `remedy` says what to do if it states another one.
    """

    channel: "Channel"
    folders: tuple[str, ...]
    results: str
    tensorflow: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Outlook:
    """The work needed to prepare a version; `download` describes what would be downloaded first.

    `advice` says what would make it possible, if it is not what usually does. `detail` is what another program said.
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
        """Return what installs the packages that workloads require beyond those of the version."""

    def start(self, paths: WorkerPaths, stream: Path) -> Started:
        """Start a worker; raise EnvironmentFailed, or EngineUnavailable if the engine itself is gone."""


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
        """Return what the engine keeps and the folder it keeps it in, if that can be seen from here."""

    def close(self) -> None:
        """Free what the engine holds; never raise."""


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """An engine as the command line offers it."""

    title: str
    make: Callable[[EngineOptions], Engine]
    # What a replicate may have for itself, where forks are not wanted.
    isolation: Isolation
    # Whether workers are children of another program: they are not bound by this process's CPUs and do not see its
    # folders.
    detached: bool = False
    # The processes and threads that a worker may have, where the engine limits them.
    tasks: int | None = None


def _docker(options: EngineOptions) -> Engine:
    # Imported here: docker's client is slow to import and not needed where virtual environments are used.
    from orchestrator.engines.docker.engine import DockerEngine

    return DockerEngine(options)


def _venv(options: EngineOptions) -> Engine:
    from orchestrator.engines.venv.engine import VenvEngine

    return VenvEngine(options)


AUTO = "auto"
# In the order in which `auto` tries them.
ENGINES: dict[str, EngineInfo] = {
    DOCKER: EngineInfo(title="Docker", make=_docker, isolation="container", detached=True, tasks=WORKER_TASKS),
    VENV: EngineInfo(title="virtual environments", make=_venv, isolation="process", tasks=WORKER_TASKS),
}
