"""Machines that are reached one by one are one fleet, and one that goes costs itself alone."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from orchestrator.fleet.cluster import Cluster
from orchestrator.fleet.model import ClusterGone, Contents, FleetNode, TaskLost
from orchestrator.fleet.ways import SeparateMachines


@dataclass
class OneMachine:
    """A cluster of one machine, whose tasks are numbers that end when the test says so."""

    name: str
    is_gone: bool = False
    ended: set[int] = field(default_factory=set)
    cancelled: list[int] = field(default_factory=list)
    begun: int = 0

    def check(self) -> None:
        if self.is_gone:
            raise ClusterGone("Client is shutting down.")

    def nodes(self) -> Sequence[FleetNode]:
        self.check()
        return [FleetNode(id=f"id-{self.name}", name=self.name)]

    def ask(self, node: FleetNode) -> int:
        return self.begin(node, b"", {})

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> int:
        self.check()
        assert node.name == self.name
        self.begun += 1
        return self.begun

    def wait(self, begun: Collection[int], seconds: float) -> Sequence[int]:
        self.check()
        return [task for task in begun if task in self.ended]

    def answer(self, begun: int) -> str:
        self.check()
        return f"{self.name} {begun}"

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        self.check()
        return [(self.name.encode(), {})]

    def end(self, begun: int) -> None:
        self.check()
        self.cancelled.append(begun)

    def close(self) -> None: ...


@pytest.fixture
def both() -> tuple[OneMachine, OneMachine]:
    return OneMachine("a"), OneMachine("b")


@pytest.fixture
def fleet(both: tuple[OneMachine, OneMachine]) -> SeparateMachines:
    return SeparateMachines({one.name: cast(Cluster, one) for one in both})


def begin_all(fleet: SeparateMachines) -> list[Any]:
    return [fleet.begin(node, b"task", {}) for node in fleet.nodes()]


def test_each_task_is_begun_and_answered_by_its_machine(fleet: SeparateMachines, both: tuple[OneMachine, OneMachine]):
    a, b = both
    first, second = begin_all(fleet)
    assert fleet.wait([first, second], 0.01) == []
    b.ended.add(1)
    assert fleet.wait([first, second], 10) == [second]
    assert fleet.answer(second) == "b 1"
    assert fleet.heard() == [(b"a", {}), (b"b", {})]
    fleet.end(first)
    assert (a.cancelled, b.cancelled) == ([1], [])


def test_a_machine_that_goes_loses_its_task_and_no_other(fleet: SeparateMachines, both: tuple[OneMachine, OneMachine]):
    first, second = begin_all(fleet)
    both[0].is_gone = True
    assert fleet.wait([first, second], 10) == [first]
    with pytest.raises(TaskLost, match="its host is gone"):
        fleet.answer(first)
    assert [node.name for node in fleet.nodes()] == ["b"]
    assert fleet.heard() == [(b"b", {})]
    fleet.end(first)
    both[1].ended.add(1)
    assert fleet.wait([second], 10) == [second]


def test_a_task_for_a_machine_that_has_just_gone_is_lost(fleet: SeparateMachines, both: tuple[OneMachine, OneMachine]):
    node, _ = fleet.nodes()
    both[0].is_gone = True
    begun = fleet.begin(node, b"task", {})
    assert fleet.wait([begun], 10) == [begun]
    with pytest.raises(TaskLost):
        fleet.answer(begun)


def test_without_a_task_it_waits_all_the_same(fleet: SeparateMachines):
    assert fleet.wait([], 0.01) == []
