"""An engine whose versions are a stub of TensorFlow; everything else of its workers is real."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.catalog.version import Version
from orchestrator.catalog.workloads import WORKLOADS
from orchestrator.engines import Outlook, Started, WorkerPaths
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.environment import worker_variables
from orchestrator.engines.worker.channel import ProcessChannel
from orchestrator.errors import (
    EnvironmentFailed,
)
from orchestrator.model import EnvironmentFacts


@dataclass
class Environment:
    """A version whose TensorFlow is a stub; everything else of its worker is real."""

    facts: EnvironmentFacts
    stub: Path
    fails: str = ""
    act: Callable[[], None] = lambda: None

    def start(self, paths: WorkerPaths, stream: Path) -> Started:
        if self.fails:
            raise EnvironmentFailed(self.fails, version=self.facts.version)
        self.act()
        variables = {**worker_variables(), "PYTHONPATH": str(self.stub), "HOME": str(self.stub)}
        channel = ProcessChannel([sys.executable, str(WORKLOADS / "worker.py")], variables, paths.log)
        return Started(channel, (str(paths.own_workloads),), str(stream))


@dataclass
class Engine:
    stub: Path
    absent: tuple[str, ...] = ()
    fails: dict[str, str] = field(default_factory=dict)
    act: Callable[[], None] = lambda: None
    closed: bool = False

    def check(self) -> str:
        return "stubs"

    def sweep(self) -> list[str]:
        return []

    def outlook(self, version: Version) -> Outlook:
        return Outlook("ready", "ready")

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        if version.number in self.absent:
            raise EnvironmentFailed("no disk", version=version.number, detail="  | the end of a log")
        facts = EnvironmentFacts(version=version.number, kind="venv", identity="x", lock="y", python="3.11.7")
        return Environment(facts, self.stub, self.fails.get(version.number, ""), self.act)

    def close(self) -> None:
        self.closed = True
