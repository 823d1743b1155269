"""Hands units to hosts, one at a time each, until each unit is measured or no host can.

A host that dies, or that cannot measure, costs the units that it had: they begin again on another one. It knows no Ray,
and reads no result.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from orchestrator.fleet.model import Contents, Fleet, FleetNode, HostReport, TaskLost, UnitAnswer, UnitMessage
from orchestrator.fleet.units import Unit
from orchestrator.terminal.progress import View

REPORT, MESSAGE = TypeAdapter(HostReport), TypeAdapter(UnitMessage)
# Between two looks at what happens.
WAIT_S = 0.2
# Between two looks at which machines there are.
LOOK_S = 1.0
# For machines to say what they are: what cannot be placed by then is reported.
ASKING_S = 8.0
# Losing a machine is no fault of a unit, which begins again; one that loses this many is at fault itself.
MOST_LOST = 3
# A host that fails so many units in a row is left out.
MOST_FAILURES = 2
# A host that lost a unit may be gone: others come first, until that is known.
DOUBT_S = 10.0
# How long, and how often, a unit waits for hosts that measure something else.
REST_S, MOST_RESTS = 20.0, 30
# For a unit to free its containers.
ENDING_S = 30.0


@dataclass
class FleetHost:
    """A machine of the fleet, and what it is doing."""

    node: FleetNode
    asked: Any
    report: HostReport | None = None
    left_out: str = ""
    job: "UnitJob | None" = None
    begun: Any = None
    # Since when it was asked, or has its unit.
    since: float = 0.0
    heard: bool = False
    failures: int = 0
    rests_until: float = 0.0

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_free(self) -> bool:
        return self.report is not None and not self.left_out and self.job is None


@dataclass
class UnitJob:
    """A unit to be measured, and what became of it so far; with several hosts a unit, one of its copies."""

    unit: Unit
    copy: int = 1
    attempt: int = 0
    lost: int = 0
    rests: int = 0
    # Hosts that failed, by id, and the last reason.
    refused_by: set[str] = field(default_factory=set)
    reason: str = ""
    host: str = ""
    is_done: bool = False
    is_given_up: bool = False

    @property
    def is_open(self) -> bool:
        return not self.is_done and not self.is_given_up


class FleetRules(Protocol):
    """What decides about hosts, units and answers; dispatching only asks."""

    def admit(self, node: FleetNode, report: HostReport, others: Sequence[tuple[FleetNode, HostReport]]) -> str:
        """Return why a machine is left out, or ''."""

    def suits(self, unit: Unit, report: HostReport) -> str:
        """Return why a machine cannot measure a unit, or ''."""

    def request(self, job: UnitJob) -> tuple[bytes, Contents]: ...

    def keep(self, job: UnitJob, host: FleetHost, files: Contents) -> None:
        """Keep what a unit has measured so far."""

    def accept(self, job: UnitJob, host: FleetHost, answer: UnitAnswer) -> str:
        """Take the answer of a unit, and return why it cannot be used, or ''."""


class Dispatch:
    def __init__(
        self, fleet: Fleet, rules: FleetRules, view: View, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fleet = fleet
        self._rules = rules
        self._view = view
        self._clock = clock
        self._began = clock()
        self._looked = -LOOK_S
        self.jobs: list[UnitJob] = []
        self.hosts: dict[str, FleetHost] = {}

    def ask(self) -> tuple[HostReport, ...]:
        """Ask every machine what it is, and return what those say that are of the fleet."""
        while True:
            self._look()
            asking = [host for host in self.hosts.values() if host.asked is not None]
            if not asking or self._clock() - self._began > ASKING_S:
                return tuple(host.report for host in self.members if host.report)
            self._hear(self._fleet.wait([host.asked for host in asking], WAIT_S))

    def plan(self, jobs: Iterable[UnitJob]) -> None:
        """Take what is to be measured."""
        self.jobs = list(jobs)

    def measure(self) -> None:
        """Measure all units on the hosts that there are; what none can measure is told at once."""
        try:
            while any(job.is_open for job in self.jobs):
                self._look()
                self._give_up()
                self._hand_out()
                begun = [
                    handle for host in self.hosts.values() for handle in (host.asked, host.begun) if handle is not None
                ]
                self._hear(self._fleet.wait(begun, WAIT_S) if begun else self._pause())
        except KeyboardInterrupt:
            self._end_all()
            raise

    def _pause(self) -> Sequence[Any]:
        time.sleep(WAIT_S)
        return ()

    @property
    def members(self) -> list[FleetHost]:
        """The machines that belong to the fleet."""
        return [host for host in self.hosts.values() if host.report is not None and not host.left_out]

    # Machines.

    def _look(self) -> None:
        """Find machines that have come, and those that have gone."""
        if self._clock() - self._looked < LOOK_S:
            return
        self._looked = self._clock()
        nodes = {node.id: node for node in self._fleet.nodes()}
        for id, node in nodes.items():
            if id not in self.hosts:
                self.hosts[id] = FleetHost(node, self._fleet.ask(node), since=self._clock())
        for id in self.hosts.keys() - nodes.keys():
            host = self.hosts.pop(id)
            self._view.say(f"warning: {host.name} is gone")
            if host.job:
                self._lose(host, host.job, f"{host.name} is gone")
                with suppress(Exception):
                    self._fleet.end(host.begun)

    def _learn(self, host: FleetHost) -> None:
        """Read what a machine says it is."""
        try:
            report = REPORT.validate_json(self._fleet.answer(host.asked))
        except (TaskLost, ValidationError, TypeError) as error:
            host.left_out = f"it does not say what it is: {str(error).splitlines()[0]}"
        else:
            others = [(other.node, other.report) for other in self.members if other.report]
            host.left_out = self._rules.admit(host.node, report, others)
            host.report = report
        host.asked = None
        if host.left_out:
            self._view.say(f"warning: {host.name} is left out: {host.left_out}")

    # Units.

    def _give_up(self) -> None:
        """Tell which units no host can measure, as soon as that is known."""
        asking = [host for host in self.hosts.values() if host.asked is not None]
        if asking and self._clock() - self._began < ASKING_S:
            return
        for job in self._waiting():
            reasons = {host.name: self._misfit(job, host) for host in self.members}
            if all(reasons.values()):
                told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "the fleet has no host"
                job.reason = job.reason or told
                job.is_given_up = True
                copy = f" (host {job.copy})" if job.copy > 1 else ""
                self._view.say(f"warning: no host can measure {job.unit.title}{copy}: {job.reason}")

    def _waiting(self) -> list[UnitJob]:
        taken = {id(host.job) for host in self.hosts.values()}
        return [job for job in self.jobs if job.is_open and id(job) not in taken]

    def _misfit(self, job: UnitJob, host: FleetHost) -> str:
        """Return why a host can never have a unit, or ''."""
        assert host.report
        if host.node.id in job.refused_by:
            return "it has failed"
        if any(other.unit is job.unit and other is not job and other.host == host.name for other in self.jobs):
            return "it measures that already, and a copy is for another host"
        return self._rules.suits(job.unit, host.report)

    def _hand_out(self) -> None:
        now = self._clock()
        for host in self.members:
            if not host.is_free or host.rests_until > now:
                continue
            job = next((job for job in self._waiting() if not self._misfit(job, host)), None)
            if job is None:
                continue
            job.attempt += 1
            job.host = host.name
            host.job, host.since, host.heard = job, now, False
            host.begun = self._fleet.begin(host.node, *self._rules.request(job))
            self._view.preparing(host.name, f"{job.unit.title}: begins")

    def _hear(self, ended: Sequence[Any]) -> None:
        for line, contents in self._fleet.heard():
            with suppress(ValidationError):
                self._pass_on(MESSAGE.validate_json(line), contents)
        for host in list(self.hosts.values()):
            if host.asked is not None and host.asked in ended:
                self._learn(host)
            elif host.job and host.begun in ended:
                self._take(host, host.job)

    def _pass_on(self, message: UnitMessage, contents: Contents) -> None:
        for host in self.hosts.values():
            job = host.job
            if job and (job.unit.number, job.attempt) == (message.unit, message.attempt):
                host.heard = True
                self._view.preparing(host.name, f"{job.unit.title}: {message.text}")
                if message.stays:
                    self._view.say(f"{host.name}: {message.text}")
                if contents:
                    self._rules.keep(job, host, contents)

    def _take(self, host: FleetHost, job: UnitJob) -> None:
        """Take what a host answers, and free it."""
        begun, host.begun, host.job = host.begun, None, None
        try:
            answer = self._fleet.answer(begun)
        except TaskLost as error:
            self._lose(host, job, str(error))
            return
        if answer.end.occupied:
            self._rest(host, job, answer.end.error)
            return
        reason = self._rules.accept(job, host, answer)
        if not reason:
            host.failures = 0
            job.is_done = True
            done = sum(other.is_done for other in self.jobs)
            self._view.say(f"{host.name}: {job.unit.title} is measured, {done} of {len(self.jobs)}")
            return
        job.refused_by.add(host.node.id)
        job.host, job.reason = "", f"{host.name}: {reason}"
        host.failures += 1
        self._view.say(f"warning: {host.name} could not measure {job.unit.title}: {reason}")
        if host.failures >= MOST_FAILURES:
            host.left_out = f"it failed {MOST_FAILURES} times in a row, the last time with: {reason}"
            self._view.say(f"warning: {host.name} is left out: {host.left_out}")

    def _rest(self, host: FleetHost, job: UnitJob, reason: str) -> None:
        """Let a host be for a while that measures something else; the unit goes to whichever host is free first."""
        job.host, job.reason = "", f"{host.name}: {reason}"
        job.rests += 1
        if not host.rests_until:
            self._view.say(f"{host.name} is asked again in {REST_S:.0f} s: {reason}")
        host.rests_until = self._clock() + REST_S
        if job.rests > MOST_RESTS:
            job.is_given_up = True
            self._view.say(f"warning: no host had time for {job.unit.title}; the last said: {reason}")

    def _lose(self, host: FleetHost, job: UnitJob, reason: str) -> None:
        """Put a unit back whose host or process is gone; it begins again, and what it had measured does not count."""
        host.job = host.begun = None
        host.rests_until = self._clock() + DOUBT_S
        job.host, job.reason = "", reason
        job.lost += 1
        if job.lost >= MOST_LOST:
            job.is_given_up = True
            self._view.say(f"warning: {job.unit.title} is given up after {MOST_LOST} attempts: {reason}")
        else:
            self._view.say(f"warning: {job.unit.title} begins again at its first round: {reason}")

    def _end_all(self) -> None:
        """End what is being measured, and keep what has arrived."""
        begun = [host.begun for host in self.hosts.values() if host.begun is not None]
        for handle in begun:
            with suppress(Exception):
                self._fleet.end(handle)
        until = time.monotonic() + ENDING_S
        left = list(begun)
        with suppress(KeyboardInterrupt, TaskLost):
            while left and time.monotonic() < until:
                ended = self._fleet.wait(left, WAIT_S)
                left = [handle for handle in left if handle not in ended]
