"""The machines of a fleet: they come, say what they are, and go."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from orchestrator.fleet.model import Fleet, FleetNode, HostReport, TaskLost, UnitAnswer
from orchestrator.fleet.place import find_double
from orchestrator.fleet.units import Unit
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.view import View

REPORT = TypeAdapter(HostReport)
# Between two looks at what happens.
WAIT_S = 0.2
# Between two looks at which machines there are.
LOOK_S = 1.0
# For machines to say what they are: what cannot be placed by then is reported.
ASKING_S = 8.0
# Where none that can measure has answered by then, or none may be missed: on a busy machine, Ray is slow to start a
# process. After a first one that took long, the others have a moment more.
PATIENCE_S, LATER_S = 60.0, 2.0


@dataclass
class FleetHost:
    """A machine of the cluster, and what it is doing."""

    node: FleetNode
    # The question what it is, as long as it is open, and since when.
    asked: Any
    asked_at: float
    report: HostReport | None = None
    left_out: str = ""
    # Whether only another host with the same id is in its way.
    is_double: bool = False
    job: "UnitJob | None" = None
    begun: Any = None
    failures: int = 0
    rests_until: float = 0.0
    # Since when something else is measured on it, whenever it was asked.
    busy_since: float | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def id(self) -> str:
        """Return the id of the machine: that of its node is a new one whenever it joins the cluster."""
        return self.report.id if self.report else ""

    @property
    def is_member(self) -> bool:
        return self.report is not None and not self.left_out


@dataclass(eq=False)
class UnitJob:
    """A unit to be measured, and what became of it so far; with several hosts a case, one of its copies."""

    unit: Unit
    copy: int = 1
    # Numbers of attempts are never used twice, also where a run is continued.
    attempt: int = 0
    lost: int = 0
    # The ids of hosts that failed, and the last reason.
    refused_by: set[str] = field(default_factory=set)
    reason: str = ""
    # The host that measures it, or has measured it.
    host: FleetHost | None = None
    # The ids of hosts that measured other copies of the unit before this call.
    measured_by: frozenset[str] = frozenset()
    # An answer that lacks a version, for which no host may have more.
    spare: tuple[FleetHost, UnitAnswer] | None = None
    # Whether its answer is there, and not yet judged.
    is_answered: bool = False
    is_done: bool = False
    is_given_up: bool = False

    @property
    def is_open(self) -> bool:
        return not self.is_done and not self.is_given_up


class AdmissionRules(Protocol):
    """What decides which machines belong to a fleet."""

    def admit(self, node: FleetNode, report: HostReport) -> str:
        """Return why a machine is left out, whatever others there are, or ''."""


class Roster:
    def __init__(
        self,
        fleet: Fleet,
        rules: AdmissionRules,
        view: View,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fleet = fleet
        self._rules = rules
        self._view = view
        self._clock = clock
        self._began = clock()
        self._looked = -LOOK_S
        # The hosts that are left out, each with the reason that was reported: a reason is reported once.
        self._told: set[tuple[str, str]] = set()
        # When the first machine said what it is, of those that can measure.
        self._first: float | None = None
        # By the id of their nodes.
        self.hosts: dict[str, FleetHost] = {}

    @property
    def members(self) -> list[FleetHost]:
        return [host for host in self.hosts.values() if host.is_member]

    @property
    def reports(self) -> tuple[HostReport, ...]:
        return tuple(host.report for host in self.members if host.report)

    @property
    def questions(self) -> list[Any]:
        return [host.asked for host in self.hosts.values() if host.asked is not None]

    @property
    def is_settled(self) -> bool:
        """Whether all machines have said what they are, or have had the time for it."""
        return not self._has_open_question(ASKING_S)

    def ask(self, patience_s: float = ASKING_S) -> None:
        """Ask every machine what it is, and wait for the answers; say which do not answer."""
        self.look()
        is_told = False
        while self._has_open_question(patience_s):
            if not is_told and self._first is None and self._clock() - self._began >= ASKING_S:
                self._view.say(f"no machine that can measure has answered yet; waiting up to {PATIENCE_S:.0f} s")
                is_told = True
            self.learn(self._fleet.wait(self.questions, WAIT_S))
        if silent := [host.name for host in self.hosts.values() if host.asked is not None]:
            self._view.say(f"warning: no answer after {self._clock() - self._began:.0f} s from {name_some(silent)}")

    def _has_open_question(self, patience_s: float) -> bool:
        """Return whether a machine still has time to say what it is."""

        def find_limit(host: FleetHost) -> float:
            if self._first is None or not self.members:
                return host.asked_at + PATIENCE_S
            return max(host.asked_at + patience_s, self._first + LATER_S)

        hosts = (host for host in self.hosts.values() if host.asked is not None)
        return any(self._clock() < find_limit(host) for host in hosts)

    def look(self) -> list[FleetHost]:
        """Find machines that have come, and return those that have gone."""
        if self._clock() - self._looked < LOOK_S:
            return []
        self._looked = self._clock()
        nodes = {node.id: node for node in self._fleet.nodes()}
        for id, node in nodes.items():
            if id not in self.hosts:
                self.hosts[id] = FleetHost(node, self._fleet.ask(node), self._clock())
        gone = [self.hosts.pop(id) for id in sorted(self.hosts.keys() - nodes.keys())]
        # One that was lost for a moment is another node of the same name.
        names = {node.name for node in nodes.values()}
        for host in gone:
            if host.is_member and host.name not in names:
                self._view.say(f"warning: {host.name} is gone")
        # A host that came back may have waited for what it was before to go.
        for host in self.hosts.values() if gone else ():
            if host.is_double:
                self._admit(host)
        return gone

    def learn(self, ended: Sequence[Any]) -> bool:
        """Read what machines say they are; return whether any did."""
        answered = [host for host in self.hosts.values() if host.asked is not None and host.asked in ended]
        for host in answered:
            try:
                report = REPORT.validate_json(self._fleet.answer(host.asked))
            except (TaskLost, ValidationError, TypeError) as error:
                self.leave_out(host, f"it does not say what it is: {str(error).splitlines()[0]}")
            else:
                host.report = report
                self._admit(host)
            host.asked = None
        if self._first is None and self.members:
            self._first = self._clock()
        return bool(answered)

    def _admit(self, host: FleetHost) -> None:
        """Take a host into the fleet, unless something is in the way."""
        assert host.report
        others = {other.name: other.report for other in self.members if other is not host and other.report}
        double = find_double(host.report, others)
        host.left_out, host.is_double = "", False
        if reason := self._rules.admit(host.node, host.report) or double:
            self.leave_out(host, reason)
            host.is_double = reason == double

    def leave_out(self, host: FleetHost, reason: str) -> None:
        host.left_out = reason
        if (host.name, reason) not in self._told:
            self._told.add((host.name, reason))
            self._view.say(f"warning: {host.name} is left out: {reason}")
