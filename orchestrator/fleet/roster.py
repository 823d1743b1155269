"""The machines of a fleet: they come, say what they are, and go."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from orchestrator.fleet.model import Fleet, FleetNode, HostReport, TaskLost, UnitAnswer
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
    # The question what it is, as long as it is open.
    asked: Any
    report: HostReport | None = None
    left_out: str = ""
    job: "UnitJob | None" = None
    begun: Any = None
    failures: int = 0
    rests_until: float = 0.0

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
    rests: int = 0
    # Hosts that failed, by node, and the last reason.
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

    def admit(self, node: FleetNode, report: HostReport, others: Sequence[FleetHost]) -> str:
        """Return why a machine is left out, or ''."""


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
        """Whether all that the cluster had at first have said what they are, or have had the time for it."""
        return not self.questions or self._clock() >= self._find_limit(ASKING_S)

    def ask(self, patience_s: float = ASKING_S) -> None:
        """Ask every machine what it is, and wait for the answers; say which do not answer."""
        self.look()
        is_told = False
        while self.questions and self._clock() < self._find_limit(patience_s):
            if not is_told and self._first is None and self._clock() - self._began >= ASKING_S:
                self._view.say(f"no machine that can measure has answered yet; waiting up to {PATIENCE_S:.0f} s")
                is_told = True
            self.learn(self._fleet.wait(self.questions, WAIT_S))
        if silent := [host.name for host in self.hosts.values() if host.asked is not None]:
            self._view.say(f"warning: no answer after {self._clock() - self._began:.0f} s from {name_some(silent)}")

    def _find_limit(self, patience_s: float) -> float:
        """Return until when machines have time to say what they are."""
        if self._first is None:
            return self._began + PATIENCE_S
        return max(self._began + patience_s, self._first + LATER_S)

    def look(self) -> list[FleetHost]:
        """Find machines that have come, and return those that have gone."""
        if self._clock() - self._looked < LOOK_S:
            return []
        self._looked = self._clock()
        nodes = {node.id: node for node in self._fleet.nodes()}
        for id, node in nodes.items():
            if id not in self.hosts:
                self.hosts[id] = FleetHost(node, self._fleet.ask(node))
        gone = [self.hosts.pop(id) for id in sorted(self.hosts.keys() - nodes.keys())]
        for host in gone:
            self._view.say(f"warning: {host.name} is gone")
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
                if reason := self._rules.admit(host.node, report, self.members):
                    self.leave_out(host, reason)
                host.report = report
            host.asked = None
        if self._first is None and self.members:
            self._first = self._clock()
        return bool(answered)

    def leave_out(self, host: FleetHost, reason: str) -> None:
        host.left_out = reason
        self._view.say(f"warning: {host.name} is left out: {reason}")
