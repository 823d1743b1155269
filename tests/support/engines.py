"""Engines that answer or do not, and make no environment, or only some."""

import pytest

from orchestrator.catalog.version import Version
from orchestrator.engines import Environment, Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from tests.support import actors
from tests.support.actors import Dressing, Stage
from tests.support.builders import environment_facts


class Engine:
    """An engine that answers, or does not."""

    def __init__(self, name: str, answers: bool) -> None:
        self.name = name
        self._answers = answers

    def check(self) -> str:
        if not self._answers:
            raise EngineUnavailable(f"{self.name} does not answer", "start it")
        return self.name

    def sweep(self) -> list[str]:
        return []

    def outlook(self, version: Version) -> Outlook:
        return Outlook("to build", "to be made")

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        raise EnvironmentFailed(f"{self.name} cannot make it", target=version.number)

    def close(self) -> None:
        pass


class Lacking(Engine):
    """An engine that lacks the Python of some versions."""

    def __init__(self, *lacks: str) -> None:
        super().__init__("venv", answers=True)
        self._lacks = lacks

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        if version.number in self._lacks:
            raise EnvironmentFailed("Python 3.7 could not be downloaded", target=version.number, lacks_python=True)
        facts = environment_facts(version=version.number, kind="venv")
        return Dressing(Stage(), facts)


def offer_engines(monkeypatch: pytest.MonkeyPatch, **answers: bool) -> None:
    """Let engines that answer, or do not, and make no environment stand in for these names; others are not offered."""
    actors.offer(
        monkeypatch, **{name: lambda options, n=name, a=answer: Engine(n, a) for name, answer in answers.items()}
    )
