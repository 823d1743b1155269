"""The machines of a fleet, which come, describe themselves, and go."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from orchestrator.fleet.model import Fleet, FleetNode, HostReport, TaskLost, UnitAnswer
from orchestrator.fleet.place import find_duplicate
from orchestrator.fleet.units import Unit
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.view import View

REPORT = TypeAdapter(HostReport)
# One wait for answers of hosts takes at most this long.
WAIT_S = 0.2
# The list of machines is read again after this time.
LOOK_S = 1.0
# Machines have this long to describe themselves; then units that no host can measure are reported.
ASKING_S = 8.0
# Machines have PATIENCE_S if none that can measure has answered, or if none may be missed, since Ray is slow to start a
# process on a busy machine. After the first has answered, the others have at least LATER_S more.
PATIENCE_S, LATER_S = 60.0, 2.0


@dataclass
class FleetHost:
    """A machine of the fleet, and what it is doing."""

    node: FleetNode
    # `asked` is the task that asks the machine to describe itself, or None once it has ended.
    asked: Any
    asked_at: float
    report: HostReport | None = None
    left_out: str = ""
    # The host is left out only because another one has the same id.
    is_duplicate: bool = False
    job: "UnitJob | None" = None
    begun: Any = None
    failures: int = 0
    rests_until: float = 0.0
    # Every attempt since this time has found something else measured on the host.
    busy_since: float | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def id(self) -> str:
        """Return the id of the machine, since its node gets a new id whenever it joins the cluster."""
        return self.report.id if self.report else ""

    @property
    def is_member(self) -> bool:
        return self.report is not None and not self.left_out


@dataclass(eq=False)
class UnitJob:
    """A unit to be measured, and its progress; if several hosts measure each case, one of its copies."""

    unit: Unit
    copy: int = 1
    # The number of an attempt is never used again, even if the run is continued.
    attempt: int = 0
    lost: int = 0
    # These hosts, by their ids, have failed; `reason` is the last reason.
    refused_by: set[str] = field(default_factory=set)
    reason: str = ""
    # This host measures the unit, or has measured it.
    host: FleetHost | None = None
    # These hosts, by their ids, measured other copies of the unit before the run was continued.
    measured_by: frozenset[str] = frozenset()
    # This answer lacks a version, and is used if no other host has a complete one.
    spare: tuple[FleetHost, UnitAnswer] | None = None
    # The answer has arrived, and is not judged yet.
    is_answered: bool = False
    is_done: bool = False
    is_given_up: bool = False

    @property
    def is_open(self) -> bool:
        return not self.is_done and not self.is_given_up


class AdmissionRules(Protocol):
    """The rules that decide which machines belong to a fleet."""

    def admit(self, node: FleetNode, report: HostReport) -> str:
        """Return why a machine is left out, regardless of other machines, or ''."""


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
        # Each reason for leaving out a host is reported only once.
        self._told: set[tuple[str, str]] = set()
        # The first machine that can measure described itself at this time.
        self._first: float | None = None
        # The keys are the ids of nodes.
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
        """Whether all machines have described themselves, or have had enough time to."""
        return not self._has_open_question(ASKING_S)

    def ask(self, patience_s: float = ASKING_S) -> None:
        """Ask every machine to describe itself, and wait for the answers; warn of those that do not answer."""
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
        """Return whether a machine still has time to describe itself."""

        def find_limit(host: FleetHost) -> float:
            if self._first is None or not self.members:
                return host.asked_at + PATIENCE_S
            return max(host.asked_at + patience_s, self._first + LATER_S)

        hosts = (host for host in self.hosts.values() if host.asked is not None)
        return any(self._clock() < find_limit(host) for host in hosts)

    def look(self) -> list[FleetHost]:
        """Add machines that have come, and return those that have gone."""
        if self._clock() - self._looked < LOOK_S:
            return []
        self._looked = self._clock()
        nodes = {node.id: node for node in self._fleet.nodes()}
        for id, node in nodes.items():
            if id not in self.hosts:
                self.hosts[id] = FleetHost(node, self._fleet.ask(node), self._clock())
        gone = [self.hosts.pop(id) for id in sorted(self.hosts.keys() - nodes.keys())]
        # A machine that was lost for a moment comes back as another node of the same name.
        names = {node.name for node in nodes.values()}
        for host in gone:
            if host.is_member and host.name not in names:
                self._view.say(f"warning: {host.name} is gone")
        # A host that came back may have been left out until its former node was gone.
        for host in self.hosts.values() if gone else ():
            if host.is_duplicate:
                self._admit(host)
        return gone

    def learn(self, ended: Sequence[Any]) -> bool:
        """Read the descriptions that machines have sent; return whether any machine has answered."""
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
        double = find_duplicate(host.report, others)
        host.left_out, host.is_duplicate = "", False
        if reason := self._rules.admit(host.node, host.report) or double:
            self.leave_out(host, reason)
            host.is_duplicate = reason == double

    def leave_out(self, host: FleetHost, reason: str) -> None:
        host.left_out = reason
        if (host.name, reason) not in self._told:
            self._told.add((host.name, reason))
            self._view.say(f"warning: {host.name} is left out: {reason}")
