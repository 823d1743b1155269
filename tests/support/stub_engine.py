"""An engine whose versions are a stub of TensorFlow; everything else of its workers is real."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.catalog.version import Version
from orchestrator.catalog.workloads import WORKLOADS
from orchestrator.engines import Outlook, StartedWorker, WorkerPaths
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.environment import worker_variables
from orchestrator.engines.layers import Uv
from orchestrator.engines.worker.channel import ProcessChannel
from orchestrator.errors import (
    EnvironmentFailed,
)
from orchestrator.model import EnvironmentFacts
from tests.support.builders import environment_facts


@dataclass
class Environment:
    """A version whose TensorFlow is a stub; everything else of its worker is real."""

    facts: EnvironmentFacts
    stub: Path
    fails: str = ""
    act: Callable[[], None] = lambda: None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def uv(self) -> Uv:
        raise EnvironmentFailed("a stub gets no packages", target=self.facts.target)

    def start(self, paths: WorkerPaths, stream: Path) -> StartedWorker:
        if self.fails:
            raise EnvironmentFailed(self.fails, target=self.facts.target)
        self.act()
        variables = {**worker_variables(), "PYTHONPATH": str(self.stub), "HOME": str(self.stub), **self.variables}
        channel = ProcessChannel([sys.executable, str(WORKLOADS / "worker.py")], variables, paths.log)
        return StartedWorker(channel, (str(paths.own_workloads),), str(stream))


@dataclass
class Engine:
    stub: Path
    absent: tuple[str, ...] = ()
    fails: dict[str, str] = field(default_factory=dict)
    act: Callable[[], None] = lambda: None
    # By version: what its workers find in their environment, and the bytes that it takes on the disk.
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    closed: bool = False

    def check(self) -> str:
        return "stubs"

    def sweep(self) -> list[str]:
        return []

    def outlook(self, version: Version) -> Outlook:
        return Outlook("ready", "ready")

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        if version.number in self.absent:
            raise EnvironmentFailed("no disk", target=version.number, detail="  | the end of a log")
        facts = environment_facts(version.number, size_bytes=self.sizes.get(version.number))
        variables = self.variables.get(version.number, {})
        return Environment(facts, self.stub, self.fails.get(version.number, ""), self.act, variables)

    def storage(self) -> None:
        """Say nothing of the disk."""

    def close(self) -> None:
        self.closed = True
