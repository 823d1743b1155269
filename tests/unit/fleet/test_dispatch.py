"""Units are handed to hosts; machines come, die, fail and are busy, and each unit is measured once or reported."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import TypeAdapter

from orchestrator.fleet import dispatch as dispatching
from orchestrator.fleet import roster as rosters
from orchestrator.fleet.dispatch import MOST_LOST, Dispatch
from orchestrator.fleet.model import Contents, FleetNode, HostReport, TaskLost, UnitAnswer, UnitEnd, UnitMessage
from orchestrator.fleet.roster import Roster, UnitJob
from orchestrator.fleet.units import Unit
from tests.support.builders import case
from tests.support.heard import Heard

REPORT, MESSAGE = TypeAdapter(HostReport), TypeAdapter(UnitMessage)
DONE = UnitAnswer(UnitEnd(exit_code=0), {"manifest.json": b"{}"})
LACKING = UnitAnswer(UnitEnd(exit_code=5, error="1.14.0: no Python 3.7"), {"manifest.json": b"{}"})


def failed(error: str, code: int = 4, *, occupied: bool = False) -> UnitAnswer:
    return UnitAnswer(UnitEnd(exit_code=code, error=error, occupied=occupied), {})


def node(name: str, **labels: str) -> FleetNode:
    return FleetNode(id=f"id-{name}", name=name, labels=labels)


@dataclass
class RunStart:
    node: FleetNode
    # None: a question what the machine is.
    unit: int | None
    attempt: int = 0
    ended: bool = False
    until: float = 0.0


@dataclass
class Machines:
    """A fleet with planned answers. Each wait takes one second of its clock."""

    names: list[str]
    # By host: what it answers, unit after unit; then it measures.
    answers: dict[str, list[Any]] = field(default_factory=dict)
    # By host: which machine it says it is, if not one of that name.
    ids: dict[str, str] = field(default_factory=dict)
    # Hosts that never say what they are.
    silent: set[str] = field(default_factory=set)
    log: list[tuple[str, int, int]] = field(default_factory=list)
    messages: list[tuple[bytes, Contents]] = field(default_factory=list)
    # By host, how long its units take.
    takes_s: dict[str, float] = field(default_factory=dict)
    now: float = 0.0
    events: dict[float, Any] = field(default_factory=dict)
    interrupted_at: float | None = None

    def clock(self) -> float:
        return self.now

    def nodes(self) -> Sequence[FleetNode]:
        return [node(name) for name in self.names]

    def ask(self, of: FleetNode) -> RunStart:
        return RunStart(of, None)

    def begin(self, of: FleetNode, task: bytes, files: Contents) -> RunStart:
        unit, attempt = map(int, task.split())
        self.log.append((of.name, unit, attempt))
        return RunStart(of, unit, attempt, until=self.now + self.takes_s.get(of.name, 0.0))

    def wait(self, begun: Collection[RunStart], seconds: float) -> Sequence[RunStart]:
        self.now += 1.0
        for at in [at for at in self.events if at <= self.now]:
            self.events.pop(at)()
        if self.interrupted_at is not None and self.now >= self.interrupted_at:
            self.interrupted_at = None
            raise KeyboardInterrupt
        return [
            each
            for each in begun
            if each.ended
            or (
                each.node.name in self.names
                and not (each.unit is None and each.node.name in self.silent)
                and each.until <= self.now
            )
        ]

    def answer(self, begun: RunStart) -> Any:
        if begun.unit is None:
            facts = {"id": self.ids.get(begun.node.name, begun.node.name)}
            return REPORT.dump_json(HostReport(tool="1", contract="c", facts=facts, engines={"venv": ""}, free_mb=9999))
        planned = self.answers.get(begun.node.name, [])
        answer = planned.pop(0) if planned else DONE
        if isinstance(answer, Exception):
            raise answer
        return answer

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        heard, self.messages = self.messages, []
        return heard

    def end(self, begun: RunStart) -> None:
        begun.ended = True

    def close(self) -> None:
        pass


@dataclass
class Rules:
    """Admits every machine, and takes every answer that has a manifest."""

    unfit: dict[str, set[int]] = field(default_factory=dict)
    unwanted: set[str] = field(default_factory=set)
    accepted: list[tuple[int, int]] = field(default_factory=list)
    kept: list[tuple[int, int, int]] = field(default_factory=list)

    def admit(self, of: FleetNode, report: HostReport) -> str:
        return "it is not wanted" if of.name in self.unwanted else ""

    def suits(self, unit: Unit, report: HostReport) -> str:
        return "it has no such GPU" if unit.number in self.unfit.get(report.id, ()) else ""

    def request(self, job: UnitJob) -> tuple[bytes, Contents]:
        return f"{job.unit.number} {job.attempt}".encode(), {}

    def keep(self, job: UnitJob, files: Contents) -> None:
        self.kept.append((job.unit.number, job.copy, job.attempt))

    def accept(self, job: UnitJob, report: HostReport, answer: UnitAnswer) -> str:
        if not answer.files:
            return answer.end.error
        self.accepted.append((job.unit.number, job.copy))
        return ""


@dataclass
class World:
    fleet: Machines
    rules: Rules = field(default_factory=Rules)
    view: Heard = field(default_factory=Heard)
    jobs: list[UnitJob] = field(default_factory=list)

    def measure(self, units: int, copies: int = 1, measured_by: Mapping[int, str] | None = None) -> list[str]:
        """Measure units; the first copy of some was measured before, by the machine with this id."""
        before = measured_by or {}
        roster = Roster(self.fleet, self.rules, self.view, self.fleet.clock)
        roster.ask()
        dispatch = Dispatch(self.fleet, roster, self.rules, self.view, self.fleet.clock)
        all_units = [Unit(number, (case(size=str(number)),)) for number in range(1, units + 1)]
        self.jobs = [
            UnitJob(unit, copy, measured_by=frozenset({before[unit.number]} if unit.number in before else ()))
            for unit in all_units
            for copy in range(1, copies + 1)
            if copy > 1 or unit.number not in before
        ]
        dispatch.measure(self.jobs)
        return self.view.lines


def test_every_unit_is_measured_once_and_all_hosts_have_some():
    world = World(Machines(["a", "b"]))
    world.measure(40)
    assert sorted(world.rules.accepted) == [(number, 1) for number in range(1, 41)]
    assert {host for host, _, _ in world.fleet.log} == {"a", "b"}
    assert len(world.fleet.log) == 40


def test_a_machine_that_comes_later_gets_units_too():
    world = World(Machines(["a"]))
    world.fleet.events = {3.0: lambda: world.fleet.names.append("b")}
    world.measure(10)
    assert {host for host, _, _ in world.fleet.log} == {"a", "b"}


def test_a_unit_of_a_machine_that_is_gone_begins_again_on_another():
    world = World(Machines(["a", "b"], silent=set()))
    lost = TaskLost("its host is gone")
    world.fleet.answers = {"a": [lost]}
    world.fleet.events = {4.0: lambda: world.fleet.names.remove("a")}
    told = world.measure(4)
    assert sorted(world.rules.accepted) == [(number, 1) for number in range(1, 5)]
    assert "warning: power[size=1] begins again at its first round: its host is gone" in told
    # The attempt has another number, so that what the first one had measured is never taken for it.
    assert [entry for entry in world.fleet.log if entry[1] == 1] == [("a", 1, 1), ("b", 1, 2)]


def test_a_unit_that_costs_one_machine_after_another_is_given_up():
    world = World(Machines(["a", "b"]))
    died = TaskLost("its process on the host died")
    world.fleet.answers = {"a": [died] * MOST_LOST, "b": [died] * MOST_LOST}
    told = world.measure(1)
    assert len(world.fleet.log) == MOST_LOST
    assert told[-1] == f"warning: power[size=1] is given up after {MOST_LOST} attempts: its process on the host died"
    assert world.jobs[0].is_given_up


def test_what_fails_on_one_host_is_tried_on_another_and_then_reported():
    world = World(Machines(["a", "b"]))
    full = failed("the disk is full")
    world.fleet.answers = {"a": [full], "b": [failed("no Python 3.7")]}
    told = world.measure(1)
    assert [host for host, _, _ in world.fleet.log] == ["a", "b"]
    assert "warning: a could not measure power[size=1]: the disk is full" in told
    assert told[-1] == "warning: no host can measure power[size=1]: b: no Python 3.7"


def test_a_host_that_always_fails_does_not_eat_all_units():
    world = World(Machines(["a", "b"]))
    world.fleet.answers = {"a": [failed("the disk is full")] * 99}
    told = world.measure(20)
    assert sorted(world.rules.accepted) == [(number, 1) for number in range(1, 21)]
    assert [host for host, _, _ in world.fleet.log].count("a") == 2
    assert "warning: a is left out: it failed 2 times in a row" in told


def test_a_host_that_measures_something_else_is_asked_again_later():
    world = World(Machines(["a"]))
    busy = failed("another run is measuring on this machine", occupied=True)
    world.fleet.answers = {"a": [busy, busy]}
    told = world.measure(1)
    assert world.rules.accepted == [(1, 1)]
    assert told[0] == "a is asked again every 20 s: another run is measuring on this machine"
    assert world.fleet.now > 2 * dispatching.REST_S


def test_a_host_that_is_busy_for_ever_is_no_reason_to_wait_for_ever():
    world = World(Machines(["a"]))
    world.fleet.answers = {"a": [failed("busy", occupied=True)] * 99}
    assert world.measure(1)[-1] == "warning: no host had time for power[size=1]: a: busy"
    assert world.fleet.now >= dispatching.MOST_BUSY_S


@pytest.mark.parametrize("hosts", [2, 30])
def test_a_unit_waits_as_long_however_many_hosts_are_busy(hosts: int):
    names = [f"h{number}" for number in range(hosts)]
    world = World(Machines(names))
    world.fleet.answers = {name: [failed("busy", occupied=True)] * 9999 for name in names}
    told = world.measure(1)
    assert "no host had time for power[size=1]" in told[-1]
    assert dispatching.MOST_BUSY_S <= world.fleet.now <= dispatching.MOST_BUSY_S + 3 * dispatching.REST_S


def test_a_unit_waits_for_a_host_that_measures_others_while_the_rest_is_busy():
    """Host b takes 20 minutes a unit; that host a is busy all the while gives no unit up."""
    world = World(Machines(["a", "b"]))
    world.fleet.answers = {"a": [failed("busy", occupied=True)] * 999}
    world.fleet.takes_s = {"b": 1200.0}
    world.measure(3)
    assert sorted(world.rules.accepted) == [(1, 1), (2, 1), (3, 1)]


def test_what_no_host_suits_is_reported_before_anything_is_measured():
    world = World(Machines(["a", "b"]))
    world.rules.unfit = {"a": {2}, "b": {2}}
    told = world.measure(3)
    assert told[0] == "warning: no host can measure power[size=2]: a: it has no such GPU; b: it has no such GPU"
    assert sorted(world.rules.accepted) == [(1, 1), (3, 1)]


def test_a_unit_goes_only_where_it_can_be_measured():
    world = World(Machines(["a", "b"]))
    world.rules.unfit = {"a": {1, 2, 3, 4}}
    world.measure(6)
    assert {host for host, unit, _ in world.fleet.log if unit <= 4} == {"b"}


def test_a_machine_that_does_not_say_what_it_is_is_not_waited_for():
    world = World(Machines(["a", "b"], silent={"b"}))
    world.measure(2)
    assert {host for host, _, _ in world.fleet.log} == {"a"}
    assert world.fleet.now < rosters.ASKING_S + 10
    assert world.view.lines[0] == "warning: no answer after 8 s from b"


def test_machines_that_all_take_long_to_say_what_they_are_are_waited_for():
    world = World(Machines(["a", "b"], silent={"a", "b"}))
    late = rosters.ASKING_S * 2
    world.fleet.events = {
        late: lambda: world.fleet.silent.remove("a"),
        late + 1: lambda: world.fleet.silent.remove("b"),
    }
    told = world.measure(2, copies=2)
    assert told[0] == "no machine that can measure has answered yet; waiting up to 60 s"
    # The second one, which came a moment after the first, has its copies, too.
    assert not [line for line in told if line.startswith("warning")]
    assert sorted(world.rules.accepted) == [(unit, copy) for unit in (1, 2) for copy in (1, 2)]


def test_machines_that_never_say_what_they_are_are_named():
    world = World(Machines(["a", "b"], silent={"a", "b"}))
    roster = Roster(world.fleet, world.rules, world.view, world.fleet.clock)
    roster.ask()
    assert roster.reports == ()
    assert world.fleet.now == rosters.PATIENCE_S
    assert world.view.lines[-1] == "warning: no answer after 60 s from a, b"


def test_copies_of_a_unit_are_on_different_hosts():
    world = World(Machines(["a", "b"]))
    world.measure(3, copies=2)
    assert sorted(world.rules.accepted) == [(unit, copy) for unit in (1, 2, 3) for copy in (1, 2)]
    for number in (1, 2, 3):
        assert sorted(job.host.id for job in world.jobs if job.unit.number == number and job.host) == ["a", "b"]


def test_a_second_copy_needs_a_second_host():
    told = World(Machines(["a"])).measure(1, copies=2)
    assert told[-1].startswith("warning: no host can measure power[size=1]: a: it has the other copy")


@pytest.mark.parametrize(("before", "hosts"), [("a", {"b"}), ("c", {"a", "b"})])
def test_a_copy_never_goes_to_the_host_that_measured_the_other_one_before(before: str, hosts: set[str]):
    world = World(Machines(["a", "b"]))
    world.measure(8, copies=2, measured_by=dict.fromkeys(range(1, 9), before))
    assert sorted(world.rules.accepted) == [(unit, 2) for unit in range(1, 9)]
    assert {host for host, _, _ in world.fleet.log} == hosts


def test_a_copy_stays_unmeasured_where_only_the_host_of_the_other_one_is_there():
    world = World(Machines(["a"]))
    told = world.measure(2, copies=2, measured_by={1: "a", 2: "b"})
    assert world.rules.accepted == [(2, 2)]
    assert (
        "warning: no host can measure power[size=1]: a: it has the other copy, and each copy needs a different"
        in told[0]
    )
    assert [job.is_given_up for job in world.jobs] == [True, False]


@pytest.mark.parametrize(("id_of_c", "unmeasured"), [("a", 1), ("c", 0)])
def test_a_machine_that_joins_again_under_another_name_is_the_same_one(id_of_c: str, unmeasured: int):
    """Host b is busy when a has measured its copy; then a is c, or c is another one, and b is gone."""
    world = World(Machines(["a", "b"], ids={"c": id_of_c}))
    world.fleet.answers = {"b": [failed("busy", occupied=True)] * 99}
    world.fleet.events = {
        8.0: lambda: world.fleet.names.remove("a"),
        9.0: lambda: world.fleet.names.append("c"),
        30.0: lambda: world.fleet.names.remove("b"),
    }
    world.measure(1, copies=2)
    assert [job.is_given_up for job in world.jobs].count(True) == unmeasured
    assert len({job.host.id for job in world.jobs if job.host}) == 2 - unmeasured


def test_an_answer_without_a_version_is_no_second_copy_of_the_host_that_has_the_first():
    world = World(Machines(["a", "b"]))
    world.fleet.answers = {"a": [LACKING] * 2, "b": [failed("busy", occupied=True)] * 99}
    world.fleet.events = {10.0: lambda: world.fleet.names.remove("b")}
    told = world.measure(1, copies=2)
    assert world.rules.accepted == [(1, 1)]
    assert told[-1].startswith("warning: no host can measure power[size=1]: a: it has the other copy")


def test_an_answer_without_a_version_is_used_if_no_host_has_it():
    world = World(Machines(["a", "b"]))
    world.fleet.answers = {"a": [LACKING], "b": [LACKING]}
    told = world.measure(1)
    assert [host for host, _, _ in world.fleet.log] == ["a", "b"]
    assert "warning: a lacks a version, and another host is asked: 1.14.0: no Python 3.7" in told
    assert world.rules.accepted == [(1, 1)]


@pytest.mark.parametrize(
    "later",
    [[TaskLost("its process on the host died")] * 9, [failed("busy", occupied=True)] * 99],
    ids=["lost again and again", "busy for ever"],
)
def test_an_answer_without_a_version_is_used_if_the_other_host_never_measures(later: list[Any]):
    world = World(Machines(["a", "b"]))
    world.fleet.answers = {"a": [LACKING], "b": later}
    world.measure(1)
    assert world.rules.accepted == [(1, 1)]
    assert world.jobs[0].is_done


def test_a_host_that_is_started_again_measures_once_its_old_node_is_gone():
    """The cluster still lists the old node when the new one comes."""
    world = World(Machines(["a", "b"], ids={"again": "a"}))
    world.fleet.answers = {"b": [failed("the disk is full")] * 9}
    world.fleet.takes_s = {"a": 50.0}
    world.fleet.events = {
        10.0: lambda: world.fleet.names.append("again"),
        20.0: lambda: world.fleet.names.remove("a"),
    }
    told = world.measure(4)
    assert any("again is left out: it has the same id as a" in line for line in told)
    assert sorted(world.rules.accepted) == [(number, 1) for number in range(1, 5)]
    assert {host for host, _, attempt in world.fleet.log if attempt > 1 or host == "again"} == {"again"}


def test_what_is_in_the_way_of_a_host_is_said_once():
    world = World(Machines(["a"]))
    world.fleet.takes_s = {"a": 100.0}
    world.rules.unwanted = {"b", "c"}
    # Nodes that come and go, as those of a machine that is asked again and again.
    for at in range(5, 90, 10):
        world.fleet.events |= {
            float(at): lambda: world.fleet.names.append("b"), float(at + 5): lambda: world.fleet.names.remove("b"),
        }  # fmt: skip
    told = world.measure(1)
    assert told.count("warning: b is left out: it is not wanted") == 1
    assert not any("b is gone" in line for line in told)


def say_when_begun(world: World, sent: Sequence[UnitMessage]) -> None:
    """Let messages arrive while each first attempt is under way."""
    begin = world.fleet.begin
    lines = [(MESSAGE.dump_json(each), {"plan.json": b"{}"}) for each in sent]

    def begin_and_say(of: FleetNode, task: bytes, files: Contents) -> RunStart:
        world.fleet.messages = [*lines, (b"no message", {})] if task == b"1 1" else []
        return begin(of, task, files)

    world.fleet.begin = begin_and_say  # type: ignore[method-assign]


def test_partial_results_are_kept_only_for_the_attempt_that_is_under_way():
    world = World(Machines(["a"]))
    world.fleet.answers = {"a": [TaskLost("its process on the host died")]}
    say_when_begun(world, [UnitMessage(unit=unit, attempt=attempt) for unit, attempt in ((1, 1), (1, 7), (9, 1))])
    world.measure(1)
    assert world.rules.kept == [(1, 1, 1)]


def test_partial_results_of_a_copy_are_kept_for_that_copy():
    world = World(Machines(["a", "b"]))
    say_when_begun(world, [UnitMessage(unit=1, copy=2, attempt=1)])
    world.measure(1, copies=2)
    assert world.rules.kept == [(1, 2, 1)]


def test_an_interrupt_ends_what_is_under_way():
    world = World(Machines(["a"]))
    world.fleet.interrupted_at = 2.0
    with pytest.raises(KeyboardInterrupt):
        world.measure(3)
    assert not any(job.is_done for job in world.jobs[1:])


def test_what_a_host_says_is_cut_to_what_can_be_read():
    world = World(Machines(["a"]))
    world.fleet.answers = {"a": [failed("x" * 10_000)]}
    told = world.measure(1)
    assert all(len(line) < 3_000 for line in told)


def test_an_error_on_this_side_ends_what_is_under_way():
    world = World(Machines(["a", "b"]))

    def full(*about: object) -> str:
        raise OSError("no space left")

    world.rules.accept = full  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no space left"):
        world.measure(4)
