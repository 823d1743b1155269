"""An engine whose workers are actors."""

from pathlib import Path

from orchestrator.catalog.version import Version
from orchestrator.engines import Environment, Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.options import EngineOptions
from tests.support.actors import Dressing, Stage
from tests.support.builders import environment_facts


class StageEngine:
    def __init__(self, options: EngineOptions) -> None:
        self._stage = Stage()

    def check(self) -> str:
        return "a stage"

    def sweep(self) -> list[str]:
        return []

    def outlook(self, version: Version) -> Outlook:
        return Outlook("ready", "ready")

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        facts = environment_facts(version=version.number, kind="stage")
        return Dressing(self._stage, facts)

    def storage(self) -> tuple[str, Path] | None:
        return None

    def close(self) -> None:
        pass
