"""Stand-ins for the engine and the profiler of a question of `why`, or of an upgrade that asks one."""

from pathlib import Path

from orchestrator.catalog.version import Version
from orchestrator.engines import Environment, Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import EnvironmentFailed
from orchestrator.model.profile import ProfiledArm
from orchestrator.profiling.model import ProfileResult
from orchestrator.profiling.run import ProfileOptions
from orchestrator.terminal.view import View
from tests.support.actors import Dressing, Stage
from tests.support.builders import environment_facts


class Theatre:
    """An engine whose workers are actors; targets with one of these variables cannot be made."""

    def __init__(self, stage: Stage, unmade: str = "") -> None:
        self._stage = stage
        self._unmade = unmade

    def check(self) -> str:
        return "actors"

    def sweep(self) -> list[str]:
        return []

    def outlook(self, version: Version) -> Outlook:
        return Outlook("ready", "ready")

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        if self._unmade and version.name == self._unmade:
            raise EnvironmentFailed("no costume", target=version.name)
        return Dressing(self._stage, environment_facts(version=version.name, kind="venv"))

    def storage(self) -> tuple[str, Path]:
        return "costumes", Path("/")

    def close(self) -> None:
        pass


class Profiler:
    """Remembers what it was asked to profile, and returns a profile without figures."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, options: ProfileOptions, view: View) -> ProfileResult:
        self.asked.append(options.run.versions)
        arms: tuple[ProfiledArm, ...] = ()
        return ProfileResult(heading=None, arms=arms, path=options.run.out)
