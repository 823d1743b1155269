"""Makes versions ready in parallel, for a run or only for their images."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator.catalog.version import Version
from orchestrator.engines import Engine, Environment
from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import EnvironmentFailed
from orchestrator.parallel import run_parallel
from orchestrator.terminal.view import View

# An install takes a core, and more of them at once would compete for the disk and the network.
MOST_AT_ONCE = 4


@dataclass(frozen=True)
class ReadyEnvironment:
    """An environment, and whether it had to be made first."""

    environment: Environment
    made: bool
    seconds: float


def find_default_parallelism() -> int:
    return min(MOST_AT_ONCE, len(os.sched_getaffinity(0)))


def make_ready(
    versions: tuple[Version, ...], engine: Engine, logs: Path, view: View, at_once: int | None = None
) -> dict[str, ReadyEnvironment | EnvironmentFailed]:
    """Make versions ready, and return the results by number.

    A version that cannot be made ready affects only itself. An interrupt also ends the builds that are in progress.
    """

    def watch(number: str) -> BuildLog:
        return BuildLog(logs / f"build-{number}.log", view, number)

    build_logs = {version.name: watch(version.name) for version in versions}

    def make(version: Version) -> ReadyEnvironment | EnvironmentFailed:
        log = build_logs[version.name]
        begun = time.monotonic()
        try:
            outlook = engine.outlook(version)
            # An impossible version is reported once, by the failure that follows.
            if outlook.state != "impossible":
                view.say(f"{version.name}: {outlook}")
            environment = engine.prepare(version, log)
        except EnvironmentFailed as error:
            view.preparing(version.name, "failed")
            return error
        seconds = time.monotonic() - begun
        view.preparing(version.name, "ready")
        if log.used:
            view.say(f"{version.name}: made in {seconds:.0f} s")
        return ReadyEnvironment(environment, log.used, seconds)

    try:
        return dict(zip(build_logs, run_parallel(make, versions, at_once or find_default_parallelism()), strict=True))
    except KeyboardInterrupt:
        for log in build_logs.values():
            log.stop()
        raise
