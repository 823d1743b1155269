"""A run whose cases two hosts measure each, from its plan to what its reports say; only Ray and workers are played."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import EngineUnavailable
from orchestrator.fleet import conduct
from orchestrator.fleet.arrive import find_hosts
from orchestrator.fleet.host import REPORT, TASK, describe_host
from orchestrator.fleet.model import Contents, Fleet, FleetNode, FleetOptions, UnitAnswer, UnitEnd
from orchestrator.measure.run import Done, measure
from orchestrator.plan.planning import plan_elsewhere, plan_run
from orchestrator.plan.request import RunOptions
from orchestrator.results.part_files import read_files
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.support.actors import Stage, offer
from tests.support.theatre import DECIDED, Theatre


@dataclass
class Hosts:
    """A cluster of machines, by the names of their nodes, that measure in this process; its nodes are always new."""

    folder: Path
    # By node: the id of its machine.
    ids: dict[str, str]
    answers: list[Callable[[], Any]] = field(default_factory=list)

    def nodes(self) -> Sequence[FleetNode]:
        return [FleetNode(id=f"{id(self)}-{name}", name=name) for name in self.ids]

    def ask(self, node: FleetNode) -> int:
        found = REPORT.validate_json(describe_host())
        facts = {**found.facts, "id": self.ids[node.name]}
        return self._begin(lambda: REPORT.dump_json(replace(found, facts=facts)))

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> int:
        return self._begin(lambda: self._measure(task))

    def wait(self, begun: Collection[int], seconds: float) -> Sequence[int]:
        return list(begun)

    def answer(self, begun: int) -> Any:
        return self.answers[begun]()

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        return ()

    def end(self, begun: int) -> None: ...

    def _begin(self, answer: Callable[[], Any]) -> int:
        self.answers.append(answer)
        return len(self.answers) - 1

    def _measure(self, task: bytes) -> UnitAnswer:
        asked = TASK.validate_json(task)
        out = self.folder / f"{asked.unit}-{asked.copy}-{asked.attempt}-{id(self)}"
        done = measure(plan_run(replace(asked.options, out=out), View()), View())
        assert done.error is None
        return UnitAnswer(UnitEnd(exit_code=0), read_files(done.path))


@dataclass
class Scene:
    folder: Path

    @property
    def run(self) -> RunFolder:
        return RunFolder.open(self.folder / "run")

    @property
    def hosts(self) -> list[dict[str, str]]:
        """By copy, which host measured each case."""
        return [find_hosts(self.run), find_hosts(RunFolder.open(self.run.path / "replicas" / "2"))]

    @property
    def notes(self) -> list[str]:
        return [note for note in self.run.read_manifest().notes if "host" in note]

    def measure(self, **ids: str) -> Done:
        asked = RunOptions(
            versions=("1.14", "2.0"), selected=(DECIDED.label,), rounds=4, engine="venv", out=self.folder / "run"
        )
        planned = plan_elsewhere(asked, View())
        options = FleetOptions(on="auto", replicate_hosts=2)
        return conduct.measure_on_fleet(planned, options, View(), self._offer(ids))

    def resume(self, **ids: str) -> Done:
        return conduct.continue_on_fleet(self.run.path, FleetOptions(on="auto"), View(), self._offer(ids))

    def _offer(self, ids: dict[str, str]) -> conduct.OpenFleet:
        @contextmanager
        def open_hosts(on: str, say: Callable[[str], None]) -> Iterator[Fleet]:
            yield Hosts(self.folder, ids)

        return open_hosts


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    offer(monkeypatch, venv=Theatre(Stage()))
    return Scene(tmp_path)


def test_two_hosts_measure_a_case_at_once(scene: Scene):
    assert scene.measure(a="one", b="two").error is None
    assert {of_copy[DECIDED.label] for of_copy in scene.hosts} == {"one", "two"}
    [note] = scene.notes
    assert note.startswith("two hosts measured each case, and the report shows the first")


@pytest.mark.parametrize("again", ["a", "b"])
def test_the_host_of_the_first_copy_never_measures_the_second_one(scene: Scene, again: str):
    """Neither under its name nor under another one."""
    alone = [f"one host alone has measured {DECIDED.label} so far"]
    assert isinstance(scene.measure(a="one").error, EngineUnavailable)
    assert scene.hosts == [{DECIDED.label: "one"}, {}]
    assert scene.notes == alone
    resumed = scene.resume(**{again: "one"})
    assert isinstance(resumed.error, EngineUnavailable)
    assert f"{again}: it has the other copy, and each copy needs a different host" in str(resumed.error)
    assert scene.hosts == [{DECIDED.label: "one"}, {}]
    assert scene.notes == alone
    assert scene.resume(**{again: "one", "c": "two"}).error is None
    assert scene.hosts == [{DECIDED.label: "one"}, {DECIDED.label: "two"}]
    [note] = scene.notes
    assert note.startswith("two hosts measured each case, and the report shows the first")
