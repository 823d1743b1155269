"""Versions are made ready side by side; each costs itself only, and says on one line where it is."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines import Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.measure import prepare
from orchestrator.measure.prepare import ReadyEnvironment, make_ready
from orchestrator.terminal.view import View

THREE = catalog.resolve_versions(["1.14", "2.0", "2.13"])


@dataclass
class Watching(View):
    said: list[str] = field(default_factory=list)
    stages: list[tuple[str, str]] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def preparing(self, version: str, text: str) -> None:
        self.stages.append((version, text))


class Engine:
    """2.0.0 fails, 2.13.0 is there already, and what is left is made."""

    def __init__(self, gone: bool = False) -> None:
        self.gone = gone
        self.going = self.most = 0
        self.lock = threading.Lock()

    def outlook(self, version: Version) -> Outlook:
        return Outlook("to build", "to be made")

    def prepare(self, version: Version, log: BuildLog):
        with self.lock:
            self.going += 1
            self.most = max(self.most, self.going)
        try:
            if self.gone:
                raise EngineUnavailable("gone")
            if version.number == "2.0.0":
                log.line("trying")
                raise EnvironmentFailed("no", target="2.0.0")
            if version.number == "1.14.0":
                log.line("making")
                threading.Event().wait(0.05)
            return version.number
        finally:
            with self.lock:
                self.going -= 1


def test_each_is_ready_or_failed_by_itself(tmp_path: Path):
    watching = Watching()
    made = make_ready(THREE, Engine(), tmp_path / "logs", watching)
    assert list(made) == ["1.14.0", "2.0.0", "2.13.0"]
    assert isinstance(made["2.0.0"], EnvironmentFailed)
    first, third = made["1.14.0"], made["2.13.0"]
    assert isinstance(first, ReadyEnvironment)
    assert isinstance(third, ReadyEnvironment)
    assert (first.environment, first.made, first.seconds >= 0.05) == ("1.14.0", True, True)
    assert (third.environment, third.made) == ("2.13.0", False)
    assert [path.name for path in sorted((tmp_path / "logs").iterdir())] == ["build-1.14.0.log", "build-2.0.0.log"]
    assert sorted(watching.said)[:2] == ["1.14.0: made in 0 s", "1.14.0: to be made"]
    assert [text for version, text in watching.stages if version == "2.0.0"] == ["trying", "failed"]
    assert [text for version, text in watching.stages if version == "1.14.0"] == ["making", "ready"]


@pytest.mark.parametrize("at_once", [1, 3])
def test_no_more_at_a_time_than_asked_for(tmp_path: Path, at_once: int):
    engine = Engine()
    make_ready(THREE, engine, tmp_path, View(), at_once)
    assert engine.most <= at_once


def test_usually_as_many_as_there_are_cores_and_never_many(monkeypatch: pytest.MonkeyPatch):
    for cores, many in ((1, 1), (2, 2), (64, 4)):
        monkeypatch.setattr(prepare.os, "sched_getaffinity", lambda pid, cores=cores: set(range(cores)))
        assert prepare.find_default_parallelism() == many


def test_an_engine_that_is_gone_is_gone_for_all(tmp_path: Path):
    with pytest.raises(EngineUnavailable):
        make_ready(THREE, Engine(gone=True), tmp_path, View())


def test_an_interrupt_ends_what_is_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stopped: list[str] = []
    monkeypatch.setattr(BuildLog, "stop", lambda self: stopped.append(self.path.name))
    monkeypatch.setattr(prepare, "run_parallel", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        make_ready(THREE, Engine(), tmp_path, View())
    assert stopped == ["build-1.14.0.log", "build-2.0.0.log", "build-2.13.0.log"]
