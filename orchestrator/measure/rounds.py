"""The measurement: a pilot that calibrates, then rounds in which all arms of a case run side by side."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator.engines import ENGINES
from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, Refused, WorkerClient, WorkerDied
from orchestrator.machine.host import Witness
from orchestrator.measure import pacing
from orchestrator.measure.workers import SLOW_START_TIMEOUT_S, Crew
from orchestrator.model import BESIDE, Arm, ArmKey, Calibrated, Case, Comparison, Disturbed, Ended, Plan, Watched
from orchestrator.plan.order import alternating, linked, round_order
from orchestrator.results.claims import judge_claims
from orchestrator.results.rundir import RunDir
from orchestrator.stats import calibrate
from orchestrator.stats.calibrate import Pilot
from orchestrator.terminal.progress import View
from workloads.contract import PILOT_ROUND

# What the pilot spends on an arm's calls, of a budget at most this share, and how many it makes at most.
PILOT_S, PILOT_SHARE = 0.3, 0.05
FEWEST_PILOT_CALLS, MOST_PILOT_CALLS = 6, 60
BURST_TIMEOUT_S = 60.0
LONGER = " (--timeout allows longer)"

Judge = Callable[[], Comparison]
Group = tuple[Case, ...]


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Rounds that are measured in one go: a run's first rounds, or additional ones.

    Looks are counted from the run's first round. The seed determines the order of these rounds; workloads draw their
    data from the plan's seed.
    """

    cases: tuple[Case, ...]
    looks: tuple[int, ...]
    budget_s: float | None
    seed: int
    first_round: int = 1


@dataclass
class Ledger:
    """The state that earlier rounds pass on to later ones."""

    calibration: dict[str, Calibrated] = field(default_factory=dict)
    ended: set[ArmKey] = field(default_factory=set)
    redone: Counter[str] = field(default_factory=Counter)
    replicates: int = 0


@dataclass
class Measurement:
    plan: Plan
    crew: Crew
    run: RunDir
    view: View
    judge: Judge
    stretch: Stretch
    ledger: Ledger = field(default_factory=Ledger)
    slow_starts: frozenset[str] = frozenset()
    started: float = field(default_factory=time.monotonic)
    # Seconds that the last visit of a case took.
    costs: dict[str, float] = field(default_factory=dict)
    # The worker of each replicate that was opened, by its number.
    workers: dict[int, int] = field(default_factory=dict)
    threads: dict[int, tuple[int, ...]] = field(default_factory=dict)
    wanted: frozenset[ArmKey] = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = frozenset(arm.key for arm in self.plan.arms())

    def measure(self) -> str:
        """Measure until the end of the stretch; return a sentence on why it ended early, or ''."""
        self._warm()
        self._calibrate([case for case in self.stretch.cases if case.label not in self.ledger.calibration])
        open_cases = [case for case in self.stretch.cases if self._alive(case)]
        for number in range(self.stretch.first_round, self.stretch.looks[-1] + 1):
            if not open_cases:
                return ""
            begun = time.monotonic()
            groups = self._groups(open_cases)
            left_out = self._round(groups, number)
            if left_out == len(groups):
                rounds = "1 round" if number == 2 else f"{number - 1} rounds"
                return f"the budget of {self.stretch.budget_s:.0f} s ended the run after {rounds}"
            took = time.monotonic() - begun
            self.view.round_done(number, self.stretch.looks[-1], len(open_cases), took, self._left(took, number))
            if left_out:
                return f"the budget of {self.stretch.budget_s:.0f} s ended the run during round {number}"
            open_cases = [case for case in open_cases if self._alive(case)]
            if number in self.stretch.looks:
                open_cases = undecided(self.judge(), open_cases, self._closed)
        return ""

    def _elapsed(self) -> float:
        return time.monotonic() - self.started

    def _left(self, took: float, number: int) -> float:
        """Estimate the time left, as an upper limit: cases leave the rotation as their verdicts come in."""
        rounds = (self.stretch.looks[-1] - number) * took
        return min(rounds, self.stretch.budget_s - self._elapsed()) if self.stretch.budget_s else rounds

    def _closed(self, arm: ArmKey) -> bool:
        return arm in self.ledger.ended or arm.version not in self.crew.versions()

    def _alive(self, case: Case) -> list[Arm]:
        arms = (Arm(case, version) for version in self.crew.versions())
        return [arm for arm in arms if arm.key in self.wanted and arm.key not in self.ledger.ended]

    def _warm(self) -> None:
        """Let the driver compile the code of versions that have none for its card, once, before any clock runs."""
        for version in sorted(self.slow_starts):
            for case in self.stretch.cases:
                arm = Arm(case, version)
                if arm not in self._alive(case):
                    continue
                self.view.say(f"{version}: its GPU code is made first, which takes minutes unless it was made before")
                begun = time.monotonic()
                replicate = self._open(arm, PILOT_ROUND, 0, 0, SLOW_START_TIMEOUT_S)
                # Also what only steady calls run has to be made, and no replicate counts without one.
                if replicate and self._burst(arm, PILOT_ROUND, replicate[0], 1):
                    self._close(arm, PILOT_ROUND, replicate[0])
                    self.view.say(f"{version}: its GPU code is there after {time.monotonic() - begun:.0f} s")
                    break
                # A refusal says nothing of the card; a deadline that was missed once will be missed again.
                if time.monotonic() - begun > self.plan.timeout_s:
                    break
        if self.slow_starts:
            self.started = time.monotonic()

    def _calibrate(self, cases: Sequence[Case]) -> None:
        """Measure one replicate of each arm, and set the effort of all later ones by it."""
        arms = sum(len(self._alive(case)) for case in cases)
        budget = self.stretch.budget_s
        calls_s = PILOT_S if budget is None else min(PILOT_S, budget * PILOT_SHARE / max(arms, 1))
        pilots = {case.label: self._pilot(case, calls_s) for case in cases}
        rounds = self.stretch.looks[0] - self.stretch.first_round + 1
        round_s = None if budget is None else (budget - self._elapsed()) / rounds
        for label, effort in calibrate.efforts(pilots, round_s, patient(self.plan)).items():
            calibrated = Calibrated(case=label, warmup=effort.warmup, bursts=effort.bursts, calls=effort.calls)
            self.ledger.calibration[label] = calibrated
            self.run.record(calibrated)

    def _pilot(self, case: Case, calls_s: float) -> list[Pilot]:
        pilots = []
        for position, arm in enumerate(self._alive(case)):
            self.view.measuring(arm.version, case, PILOT_ROUND)
            begun = time.monotonic()
            replicate = self._open(arm, PILOT_ROUND, position, warmup=0)
            took = time.monotonic() - begun
            if replicate is None:
                continue
            number, opened = replicate
            burst = self._burst(arm, PILOT_ROUND, number, _pilot_calls(opened.second_ns, calls_s))
            if burst and self._close(arm, PILOT_ROUND, number):
                pilots.append(Pilot(took, (opened.second_ns, *burst.walls_ns)))
        return pilots

    def _groups(self, cases: Sequence[Case]) -> Sequence[Group]:
        """Group the cases that are compared with each other.

        A worker that is itself the replicate can hold only one case, so each case is then a group.
        """
        if self.plan.isolation != "fork":
            return [(case,) for case in cases]
        return linked(cases, self.plan.pairs)

    def _round(self, groups: Sequence[Group], number: int) -> int:
        """Visit the groups in random order; return how many of them the budget leaves out.

        The first two rounds visit all groups or none: without them, a case has no ratio.
        """
        order = random.Random(f"{self.stretch.seed}/{number}").sample(groups, len(groups))
        if number <= 2 and not self._fits(order, number):
            return len(groups)
        left_out = 0
        for place, group in enumerate(order):
            if number <= 2 or self._fits([group], number):
                self._visit_quietly(order, place, number)
            else:
                left_out += 1
        return left_out

    def _expected_s(self, groups: Sequence[Group]) -> float:
        return pacing.expected_s([case.label for group in groups for case in group], self.costs)

    def _fits(self, groups: Sequence[Group], number: int) -> bool:
        """Return whether the budget lets a round visit these groups as well."""
        if self.stretch.budget_s is None:
            return True
        return self._elapsed() + self._expected_s(groups) <= pacing.limit_s(self.stretch.budget_s, number)

    def _visit_quietly(self, order: Sequence[Group], place: int, number: int) -> None:
        """Visit cases that are compared with each other, and repeat the visit if something disturbed it.

        A repeat covers all arms, whatever the times were.
        """
        group = order[place]
        replicates, cause = self._timed_visit(group, number)
        if not cause:
            return
        again = self._may_repeat(order, place, number)
        for case in group:
            self.run.record(
                Disturbed(case=case.label, round=number, replicates=replicates[case], cause=cause, redone=again)
            )
            self.ledger.redone[case.label] += again
        if again:
            self._timed_visit(group, number)

    def _may_repeat(self, order: Sequence[Group], place: int, number: int) -> bool:
        if not pacing.within_share((self.ledger.redone[case.label] for case in order[place]), number):
            return False
        if self.stretch.budget_s is None:
            return True
        rest_s, round_s = self._expected_s(order[place + 1 :]), self._expected_s(order)
        needed_s = pacing.ahead_s(number, self.stretch.looks[0], rest_s, round_s)
        left_s = self.stretch.budget_s - self._elapsed()
        return pacing.may_repeat(left_s, self._expected_s([order[place]]), needed_s)

    def _timed_visit(self, group: Group, number: int) -> tuple[dict[Case, tuple[int, ...]], str]:
        begun = time.monotonic()
        found = self._visit(group, number)
        self.costs.update((case.label, (time.monotonic() - begun) / len(group)) for case in group)
        return found

    def _visit(self, group: Sequence[Case], number: int) -> tuple[dict[Case, tuple[int, ...]], str]:
        """Measure all arms of the group, side by side unless only one may hold the GPU.

        Returns the replicates of each case, and what disturbed the bursts.
        """
        arms = [arm for case in group for arm in self._alive(case)]
        order = round_order(arms, self.stretch.seed, group[0].label, number)
        together = [[arm] for arm in order] if self.plan.exclusive else [order]
        replicates: dict[Arm, int] = {}
        causes = []
        for place, side_by_side in enumerate(together):
            found, cause = self._side_by_side(side_by_side, number, place)
            replicates |= found
            causes += [cause] if cause else []
        counted = {case: tuple(found for arm, found in replicates.items() if arm.case == case) for case in group}
        return counted, next(iter(causes), "")

    def _side_by_side(self, order: Sequence[Arm], number: int, first: int) -> tuple[dict[Arm, int], str]:
        """Measure these arms with all of them open at once and their bursts alternating.

        `first` is the place of the first arm in the visit.
        """
        replicates: dict[Arm, int] = {}
        for place, arm in enumerate(order, first):
            self.view.measuring(arm.version, arm.case, number)
            if replicate := self._open(arm, number, place, self.ledger.calibration[arm.case.label].warmup):
                replicates[arm] = replicate[0]
        witness, own_ns = self._witness(order), 0
        for arm in alternating(order, lambda arm: self.ledger.calibration[arm.case.label].bursts):
            if arm in replicates:
                calls = self.ledger.calibration[arm.case.label].calls
                done = self._burst(arm, number, replicates[arm], calls, calibrate.BURST_S)
                witness.look()
                if done is None:
                    del replicates[arm]
                else:
                    own_ns += done.cpu_ns
        cause = witness.disturbance(own_ns / 1e9)
        if cards := witness.spans():
            cases = tuple(dict.fromkeys(arm.case.label for arm in order))
            self.run.record(Watched(cases=cases, round=number, cards=cards))
        for arm, replicate_number in replicates.items():
            self._close(arm, number, replicate_number)
        return replicates, cause

    def _witness(self, order: Sequence[Arm]) -> Witness:
        # Containers are the engine's children, which this process's affinity does not bind.
        cpus = self.plan.cpus or (None if ENGINES[self.plan.engine].detached else os.sched_getaffinity(0))
        clients = [self.crew.client(version) for version in {arm.version for arm in order}]
        groups = [client.pid for client in clients if client and client.pid]
        return Witness.begin(cpus, self.plan.gpus if self.plan.device == "gpu" else None, groups)

    def _open(
        self, arm: Arm, number: int, position: int, warmup: int, timeout_s: float | None = None
    ) -> tuple[int, Opened] | None:
        client = self.crew.engage(arm.version)
        if client is None:
            return None
        self.ledger.replicates += 1
        try:
            answer = client.open(
                arm.case, replicate=self.ledger.replicates, round=number, position=position,
                seed=self.plan.seed, warmup=warmup, timeout_s=timeout_s or self.plan.timeout_s,
            )  # fmt: skip
        except WorkerDied as death:
            self._worker_died(arm, number, self.ledger.replicates, death)
            return None
        if isinstance(answer, Opened):
            self.workers[self.ledger.replicates] = self.crew.part(arm.version)
            self.threads[self.ledger.replicates] = answer.threads
            return self.ledger.replicates, answer
        self._end(arm, number, self.ledger.replicates, answer)
        return None

    def _burst(self, arm: Arm, number: int, replicate: int, calls: int, least_s: float = 0.0) -> Burst | None:
        client = self._holder(arm, number, replicate)
        if client is None:
            return None
        try:
            answer = client.burst(replicate, calls, max(BURST_TIMEOUT_S, self.plan.timeout_s), least_s)
        except WorkerDied as death:
            self._worker_died(arm, number, replicate, death)
            return None
        if isinstance(answer, Died):
            self._end(arm, number, replicate, answer)
            return None
        return answer

    def _close(self, arm: Arm, number: int, replicate: int) -> bool:
        client = self._holder(arm, number, replicate)
        if client is None:
            return False
        try:
            answer = client.close_replicate(replicate, BURST_TIMEOUT_S)
        except WorkerDied as death:
            self._worker_died(arm, number, replicate, death)
            return False
        self._end(arm, number, replicate, answer)
        return isinstance(answer, Closed)

    def _holder(self, arm: Arm, number: int, replicate: int) -> WorkerClient | None:
        """Return the worker that holds a replicate, or None if it has died.

        In that case the replicate is journaled as ended, and its arm is measured again in the next round.
        """
        client = self.crew.client(arm.version)
        if client and self.crew.part(arm.version) == self.workers[replicate]:
            return client
        self.run.record(
            Ended(
                version=arm.version, case=arm.case.label, round=number, replicate=replicate, outcome="died", how=BESIDE,
                reason="its worker died with another replicate",
            )
        )  # fmt: skip
        return None

    def _worker_died(self, arm: Arm, number: int, replicate: int, death: WorkerDied) -> None:
        self._end(arm, number, replicate, Died("worker", f"its worker died: {death}"))
        self.crew.bury(arm.version)

    def _end(self, arm: Arm, number: int, replicate: int, answer: Closed | Refused | Died) -> None:
        """Journal how a replicate ended; an arm that refused or died is not tried again in this run."""
        if isinstance(answer, Closed):
            ended = Ended(
                version=arm.version, case=arm.case.label, round=number, replicate=replicate, outcome="measured",
                part=self.crew.part(arm.version), rows=answer.rows, threads=self.threads.get(replicate) or None,
            )  # fmt: skip
        elif isinstance(answer, Refused):
            ended = Ended(
                version=arm.version, case=arm.case.label, round=number, replicate=replicate, outcome="refused",
                reason=answer.reason,
            )  # fmt: skip
        else:
            ended = Ended(
                version=arm.version, case=arm.case.label, round=number, replicate=replicate, outcome="died",
                how=answer.how, reason=answer.reason + (LONGER if answer.how == "timeout" else ""), log=answer.log,
            )  # fmt: skip
        self.run.record(ended)
        self.crew.release(arm.version)
        if ended.outcome != "measured":
            self.ledger.ended.add(arm.key)
            self.view.say(f"{arm.version} {ended.outcome} {arm.case.label}: {ended.reason}")


def undecided(comparison: Comparison, cases: Sequence[Case], closed: Callable[[ArmKey], bool]) -> list[Case]:
    """Return the cases with a contrast, or a claim's statement about one, that more rounds could still decide."""
    unsure = {contrast.pair for contrast in comparison.contrasts if contrast.verdict == "inconclusive"}
    for judged in judge_claims(comparison, comparison.plan.claims):
        unsure |= {one.expectation.pair for one in judged.findings if one.expectation and one.answer == "inconclusive"}
    wanted = {label for pair in unsure if not any(map(closed, pair.arms)) for label, _ in pair.arms}
    return [case for case in cases if case.label in wanted]


def patient(plan: Plan) -> frozenset[str]:
    """Return the cases that take the same time according to a claim."""
    pairs = (one.pair for claim in plan.claims for one in claim.expectations if one.effect == "same")
    return frozenset(label for pair in pairs if pair.metric == "steady" for label, _ in pair.arms)


def _pilot_calls(call_ns: int, calls_s: float) -> int:
    """Return as many calls as the pilot's time allows: a handful of slow ones, but only one that takes seconds."""
    affordable = int(calls_s * 1e9 / max(call_ns, 1))
    return min(MOST_PILOT_CALLS, max(affordable, FEWEST_PILOT_CALLS if call_ns < PILOT_S * 1e9 else 1))
