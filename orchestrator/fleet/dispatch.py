"""Hands each host one unit at a time, until every unit is measured or no host can measure it.

If a host dies or cannot measure, its unit begins again on another one. This module knows neither ssh nor Ray, and reads
no results.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from orchestrator.errors import EnvironmentFailed
from orchestrator.fleet.model import Contents, Fleet, HostReport, TaskLost, UnitAnswer, UnitMessage
from orchestrator.fleet.roster import WAIT_S, FleetHost, Roster, UnitJob
from orchestrator.fleet.units import Unit
from orchestrator.terminal.text import clip
from orchestrator.terminal.view import View

MESSAGE = TypeAdapter(UnitMessage)
# A unit whose machine is lost begins again; if it loses this many, the unit itself is at fault.
MOST_LOST = 3
# A host that fails this many units in a row is left out.
MOST_FAILURES = 2
# A host that lost a unit may be gone, so it gets no unit for this long.
LOST_REST_S = 10.0
# A host that measures something else is asked again after REST_S. A unit is given up if all hosts that suit it have
# been busy for MOST_BUSY_S.
REST_S, MOST_BUSY_S = 20.0, 600.0
# Longer texts of hosts are cut.
LONGEST = 1000
# Units have this long to free their containers.
ENDING_S = 30.0
OTHER_COPY = "it has the other copy, and each copy needs a different host"


class UnitRules(Protocol):
    """The rules about units and answers, which dispatching only applies."""

    def suits(self, unit: Unit, report: HostReport) -> str:
        """Return why a machine cannot measure a unit, or ''."""

    def request(self, job: UnitJob) -> tuple[bytes, Contents]: ...

    def keep(self, job: UnitJob, files: Contents) -> None:
        """Keep what a unit has measured so far."""

    def accept(self, job: UnitJob, report: HostReport, answer: UnitAnswer) -> str:
        """Take the answer of a unit, and return why it cannot be used, or ''."""


class Dispatch:
    def __init__(
        self, fleet: Fleet, roster: Roster, rules: UnitRules, view: View, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fleet = fleet
        self._roster = roster
        self._rules = rules
        self._view = view
        self._clock = clock
        self.jobs: list[UnitJob] = []
        self._copies: dict[int, list[UnitJob]] = {}
        # The rules are asked only once about each unit and node, since a run has thousands of units.
        self._misfits: dict[tuple[int, str], str] = {}
        # This is set when a change may have left a unit without any host that can measure it.
        self._needs_check = True

    def measure(self, jobs: Iterable[UnitJob]) -> None:
        """Measure units on the available hosts; report at once each unit that none of them can measure."""
        self.jobs = list(jobs)
        self._copies = {number: list(group) for number, group in groupby(self.jobs, lambda job: job.unit.number)}
        try:
            while any(job.is_open for job in self.jobs):
                for host in self._roster.look():
                    self._needs_check = True
                    if host.job:
                        with suppress(Exception):
                            self._fleet.end(host.begun)
                        self._lose(host.job, f"{host.name} is gone")
                self._drop_hopeless()
                self._hand_out()
                self._hear(self._fleet.wait([*self._roster.questions, *self._list_begun()], WAIT_S))
        except BaseException:
            self._end_all()
            raise

    def _list_begun(self) -> list[Any]:
        return [host.begun for host in self._roster.hosts.values() if host.begun is not None]

    def _drop_hopeless(self) -> None:
        """Give up the units that no host can measure, as soon as that is known."""
        if not self._needs_check or not self._roster.is_settled:
            return
        self._needs_check = False
        members = self._roster.members
        for job in self._waiting():
            if all(self._find_misfit(job, host) for host in members):
                told = "; ".join(f"{host.name}: {self._find_misfit(job, host)}" for host in members)
                told = job.reason or told or "the fleet has no host"
                self._give_up(job, told, f"no host can measure {job.unit.title}")

    def _give_up(self, job: UnitJob, reason: str, told: str) -> None:
        """Give a unit up, unless a host has sent an answer that only lacks a version, which is then taken."""
        job.reason = reason
        if job.spare and self._take_spare(job, *job.spare):
            return
        job.is_given_up = True
        self._view.say(f"warning: {told}: {job.reason}")

    def _waiting(self) -> list[UnitJob]:
        taken = {host.job for host in self._roster.hosts.values()}
        return [job for job in self.jobs if job.is_open and not job.is_answered and job not in taken]

    def _find_misfit(self, job: UnitJob, host: FleetHost) -> str:
        """Return why a host can never have a unit, or ''."""
        assert host.report
        if host.id in self._find_hosts_of_copies(job):
            return OTHER_COPY
        if host.id in job.refused_by:
            return "it has failed"
        key = job.unit.number, host.node.id
        if key not in self._misfits:
            self._misfits[key] = self._rules.suits(job.unit, host.report)
        return self._misfits[key]

    def _find_hosts_of_copies(self, job: UnitJob) -> set[str]:
        """Return the ids of hosts that measure other copies of a unit, or have measured them."""
        copies = self._copies.get(job.unit.number, ())
        return {*job.measured_by, *(other.host.id for other in copies if other is not job and other.host)}

    def _hand_out(self) -> None:
        free = [host for host in self._roster.members if host.job is None and host.rests_until <= self._clock()]
        waiting = self._waiting() if free else []
        # Hosts that were busy come last, so that each host is asked once before any is asked again.
        for host in sorted(free, key=lambda host: host.busy_since is not None):
            if job := next((job for job in waiting if not self._find_misfit(job, host)), None):
                waiting.remove(job)
                job.attempt += 1
                job.host, host.job, host.rests_until = host, job, 0.0
                self._needs_check |= len(self._copies[job.unit.number]) > 1
                host.begun = self._fleet.begin(host.node, *self._rules.request(job))
                self._view.preparing(host.name, f"{job.unit.title}: begins")

    def _hear(self, ended: Sequence[Any]) -> None:
        self._pass_on(self._fleet.heard())
        self._needs_check |= self._roster.learn(ended)
        measured = []
        for host in list(self._roster.hosts.values()):
            if (job := host.job) and host.begun in ended and (answer := self._free(host, job)):
                if answer.end.exit_code == 0:
                    job.is_answered = True
                    measured.append((host, job, answer))
                else:
                    self._take(host, job, answer)
        # Results are written while the hosts already measure their next units.
        self._hand_out()
        for host, job, answer in measured:
            self._take(host, job, answer)

    def _pass_on(self, heard: Sequence[tuple[bytes, Contents]]) -> None:
        """Show the messages of hosts about their units, and keep the files that come with them."""
        measuring = {
            (job.unit.number, job.copy, job.attempt): (host, job)
            for host in self._roster.hosts.values()
            if (job := host.job)
        }
        for line, contents in heard:
            with suppress(ValidationError):
                message = MESSAGE.validate_json(line)
                if found := measuring.get((message.unit, message.copy, message.attempt)):
                    host, job = found
                    text = clip(message.text, LONGEST)
                    self._view.preparing(host.name, f"{job.unit.title}: {text}")
                    if message.stays:
                        self._view.say(f"{host.name}: {text}")
                    if contents:
                        self._rules.keep(job, contents)

    def _free(self, host: FleetHost, job: UnitJob) -> UnitAnswer | None:
        """Free a host whose unit has ended, and return its answer, if there is one."""
        begun, host.begun, host.job = host.begun, None, None
        try:
            answer = self._fleet.answer(begun)
            if not isinstance(answer, UnitAnswer):
                raise TaskLost("it sent no answer to its unit")
        except TaskLost as error:
            host.rests_until = self._clock() + LOST_REST_S
            self._lose(job, str(error))
            return None
        if answer.end.occupied:
            self._rest(host, job, answer.end.error)
            return None
        host.busy_since = None
        return answer

    def _take(self, host: FleetHost, job: UnitJob, answer: UnitAnswer) -> None:
        """Take an answer, or let another host try; leave out a host that fails several times in a row."""
        assert host.report
        job.is_answered = False
        error = clip(answer.end.error, LONGEST)
        if answer.end.exit_code == EnvironmentFailed.exit_code and job.spare is None and answer.files:
            self._rules.keep(job, answer.files)
            self._needs_check = True
            job.refused_by.add(host.id)
            job.host, job.reason, job.spare = None, f"{host.name}: {error}", (host, answer)
            self._view.say(f"warning: {host.name} lacks a version, and another host is asked: {error}")
        elif reason := self._rules.accept(job, host.report, answer):
            reason = clip(reason, LONGEST)
            self._needs_check = True
            job.refused_by.add(host.id)
            job.host, job.reason = None, f"{host.name}: {reason}"
            host.failures += 1
            self._view.say(f"warning: {host.name} could not measure {job.unit.title}: {reason}")
            if host.failures >= MOST_FAILURES:
                self._roster.leave_out(host, f"it failed {MOST_FAILURES} times in a row")
        else:
            host.failures = 0
            self._finish(job, host.name)

    def _take_spare(self, job: UnitJob, host: FleetHost, answer: UnitAnswer) -> bool:
        """Take an answer that lacks a version, unless its host has another copy by now; return whether it was taken."""
        assert host.report
        if host.id in self._find_hosts_of_copies(job):
            job.reason = f"{host.name}: {OTHER_COPY}"
            return False
        if self._rules.accept(job, host.report, answer):
            return False
        job.host = host
        self._finish(job, "the fleet")
        return True

    def _finish(self, job: UnitJob, name: str) -> None:
        job.is_done = True
        done = sum(other.is_done for other in self.jobs)
        self._view.say(f"{name}: {job.unit.title} is measured, {done} of {len(self.jobs)}")

    def _rest(self, host: FleetHost, job: UnitJob, reason: str) -> None:
        """Let a host rest because it measures something else; the unit goes to the first host that is free."""
        job.host, job.reason = None, f"{host.name}: {reason}"
        host.rests_until = self._clock() + REST_S
        if host.busy_since is None:
            host.busy_since = self._clock()
            self._view.say(f"{host.name} is asked again every {REST_S:.0f} s: {reason}")
        since = [other.busy_since for other in self._roster.members if not self._find_misfit(job, other)]
        if all(at is not None and self._clock() - at >= MOST_BUSY_S for at in since):
            self._give_up(job, job.reason, f"no host had time for {job.unit.title}")

    def _lose(self, job: UnitJob, reason: str) -> None:
        """Put back a unit whose host or process is gone; it begins again, and what it had measured does not count."""
        job.host = None
        job.lost += 1
        if job.lost >= MOST_LOST:
            self._give_up(job, reason, f"{job.unit.title} is given up after {MOST_LOST} attempts")
        else:
            job.reason = reason
            self._view.say(f"warning: {job.unit.title} begins again at its first round: {reason}")

    def _end_all(self) -> None:
        """End what is being measured."""
        left = self._list_begun()
        for handle in left:
            with suppress(Exception):
                self._fleet.end(handle)
        until = self._clock() + ENDING_S
        with suppress(KeyboardInterrupt):
            while left and self._clock() < until:
                ended = self._fleet.wait(left, WAIT_S)
                left = [handle for handle in left if handle not in ended]
