"""The measurement: a pilot that calibrates, then rounds in which all arms of a case run side by side."""

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.contract import PILOT_ROUND
from orchestrator.engines import ENGINES
from orchestrator.machine.host import Witness
from orchestrator.measure import pacing
from orchestrator.measure.prepare_run import PreparedRun
from orchestrator.measure.replicate import LiveReplicate, Progress, Replicates
from orchestrator.measure.workers import SLOW_START_TIMEOUT_S, Workers
from orchestrator.model import Arm, ArmKey, Calibrated, Case, Comparison, Disturbed, Plan, Watched
from orchestrator.plan.order import alternating, group_linked, round_order
from orchestrator.results.claims import judge_claims
from orchestrator.results.comparison import judge_run
from orchestrator.stats import calibrate
from orchestrator.stats.calibrate import Pilot
from orchestrator.terminal.progress import View

# What the pilot spends on an arm's calls, of a budget at most this share, and how many it makes at most.
PILOT_S, PILOT_SHARE = 0.3, 0.05
FEWEST_PILOT_CALLS, MOST_PILOT_CALLS = 6, 60

Group = tuple[Case, ...]


@dataclass(frozen=True, kw_only=True)
class RoundRange:
    """Rounds that are measured in one go: a run's first rounds, or additional ones.

    Looks are counted from the run's first round. The seed determines the order of these rounds; workloads draw their
    data from the plan's seed.
    """

    cases: tuple[Case, ...]
    looks: tuple[int, ...]
    budget_s: float | None
    seed: int
    first_round: int = 1


def first_rounds(plan: Plan) -> RoundRange:
    return RoundRange(cases=plan.cases, looks=plan.looks, budget_s=plan.budget_s, seed=plan.seed)


class RoundLoop:
    def __init__(
        self,
        prepared: PreparedRun,
        workers: Workers,
        view: View,
        rounds: RoundRange,
        progress: Progress | None = None,
        started: float | None = None,
    ) -> None:
        self.plan = prepared.plan
        self.run = prepared.directory
        self.slow_starts = prepared.fitting.slow_starts
        self.workers = workers
        self.view = view
        self.rounds = rounds
        self.progress = progress or Progress()
        self.replicates = Replicates(prepared, workers, view, self.progress)
        self.started = time.monotonic() if started is None else started
        # Seconds that the last visit of a case took.
        self.costs: dict[str, float] = {}
        self.wanted = frozenset(arm.key for arm in self.plan.arms())

    def measure(self) -> str:
        """Measure until the last look; return a sentence on why it ended early, or ''."""
        self._warm()
        self._calibrate([case for case in self.rounds.cases if case.label not in self.progress.calibration])
        open_cases = [case for case in self.rounds.cases if self._alive(case)]
        for number in range(self.rounds.first_round, self.rounds.looks[-1] + 1):
            if not open_cases:
                return ""
            begun = time.monotonic()
            groups = self._groups(open_cases)
            left_out = self._round(groups, number)
            if left_out == len(groups):
                rounds = "1 round" if number == 2 else f"{number - 1} rounds"
                return f"the budget of {self.rounds.budget_s:.0f} s ended the run after {rounds}"
            took = time.monotonic() - begun
            self.view.round_done(number, self.rounds.looks[-1], len(open_cases), took, self._remaining_s(took, number))
            if left_out:
                return f"the budget of {self.rounds.budget_s:.0f} s ended the run during round {number}"
            open_cases = [case for case in open_cases if self._alive(case)]
            if number in self.rounds.looks:
                open_cases = find_undecided(judge_run(self.run, at_look=True), open_cases, self._is_closed)
        return ""

    def _seconds_since_start(self) -> float:
        return time.monotonic() - self.started

    def _remaining_s(self, took: float, number: int) -> float:
        """Estimate the time left, as an upper limit: cases leave the rotation as their verdicts come in."""
        rounds = (self.rounds.looks[-1] - number) * took
        return min(rounds, self.rounds.budget_s - self._seconds_since_start()) if self.rounds.budget_s else rounds

    def _is_closed(self, arm: ArmKey) -> bool:
        return arm in self.progress.ended or arm.version not in self.workers.versions()

    def _alive(self, case: Case) -> list[str]:
        return [
            version
            for version in self.workers.versions()
            if (arm := ArmKey(case.label, version)) in self.wanted and arm not in self.progress.ended
        ]

    def _warm(self) -> None:
        """Let the driver compile the code of versions that have none for its card, once, before any clock runs."""
        for version in sorted(self.slow_starts):
            for case in self.rounds.cases:
                if version not in self._alive(case):
                    continue
                self.view.say(f"{version}: its GPU code is made first, which takes minutes unless it was made before")
                begun = time.monotonic()
                replicate = self.replicates.open(
                    Arm(case, version), PILOT_ROUND, position=0, warmup=0, timeout_s=SLOW_START_TIMEOUT_S
                )
                # Also what only steady calls run has to be made, and no replicate counts without one.
                if replicate and replicate.burst(1):
                    replicate.close()
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
        budget = self.rounds.budget_s
        calls_s = PILOT_S if budget is None else min(PILOT_S, budget * PILOT_SHARE / max(arms, 1))
        pilots = {case.label: self._pilot(case, calls_s) for case in cases}
        rounds = self.rounds.looks[0] - self.rounds.first_round + 1
        round_s = None if budget is None else (budget - self._seconds_since_start()) / rounds
        for label, effort in calibrate.efforts(pilots, round_s, patient(self.plan)).items():
            calibrated = Calibrated(case=label, warmup=effort.warmup, bursts=effort.bursts, calls=effort.calls)
            self.progress.calibration[label] = calibrated
            self.run.record(calibrated)

    def _pilot(self, case: Case, calls_s: float) -> list[Pilot]:
        pilots = []
        for position, version in enumerate(self._alive(case)):
            self.view.measuring(version, case, PILOT_ROUND)
            begun = time.monotonic()
            replicate = self.replicates.open(Arm(case, version), PILOT_ROUND, position=position, warmup=0)
            took = time.monotonic() - begun
            if replicate is None:
                continue
            burst = replicate.burst(_pilot_calls(replicate.second_ns, calls_s))
            if burst and replicate.close():
                pilots.append(Pilot(took, (replicate.second_ns, *burst.walls_ns)))
        return pilots

    def _groups(self, cases: Sequence[Case]) -> Sequence[Group]:
        """Group the cases that are compared with each other.

        A worker that is itself the replicate can hold only one case, so each case is then a group.
        """
        if self.plan.isolation != "fork":
            return [(case,) for case in cases]
        return group_linked(cases, self.plan.pairs)

    def _round(self, groups: Sequence[Group], number: int) -> int:
        """Visit the groups in random order; return how many of them the budget leaves out.

        The first two rounds visit all groups or none: without them, a case has no ratio.
        """
        order = random.Random(f"{self.rounds.seed}/{number}").sample(groups, len(groups))
        if number <= 2 and not self._fits(order, number):
            return len(groups)
        left_out = 0
        for position, group in enumerate(order):
            if number <= 2 or self._fits([group], number):
                self._visit_quietly(order, position, number)
            else:
                left_out += 1
        return left_out

    def _estimate_s(self, groups: Sequence[Group]) -> float:
        return pacing.estimate_s([case.label for group in groups for case in group], self.costs)

    def _fits(self, groups: Sequence[Group], number: int) -> bool:
        """Return whether the budget lets a round visit these groups as well."""
        if self.rounds.budget_s is None:
            return True
        return self._seconds_since_start() + self._estimate_s(groups) <= pacing.limit_s(self.rounds.budget_s, number)

    def _visit_quietly(self, order: Sequence[Group], position: int, number: int) -> None:
        """Visit cases that are compared with each other, and repeat the visit if something disturbed it.

        A repeat covers all arms, whatever the times were.
        """
        group = order[position]
        replicates, cause = self._visit_and_time(group, number)
        if not cause:
            return
        again = self._may_repeat(order, position, number)
        for case in group:
            self.run.record(
                Disturbed(case=case.label, round=number, replicates=replicates[case], cause=cause, redone=again)
            )
            self.progress.redone[case.label] += again
        if again:
            self._visit_and_time(group, number)

    def _may_repeat(self, order: Sequence[Group], position: int, number: int) -> bool:
        if not pacing.within_share((self.progress.redone[case.label] for case in order[position]), number):
            return False
        if self.rounds.budget_s is None:
            return True
        rest_s, round_s = self._estimate_s(order[position + 1 :]), self._estimate_s(order)
        needed_s = pacing.ahead_s(number, self.rounds.looks[0], rest_s, round_s)
        left_s = self.rounds.budget_s - self._seconds_since_start()
        return pacing.may_repeat(left_s, self._estimate_s([order[position]]), needed_s)

    def _visit_and_time(self, group: Group, number: int) -> tuple[dict[Case, tuple[int, ...]], str]:
        begun = time.monotonic()
        visit = self._visit(group, number)
        self.costs.update((case.label, (time.monotonic() - begun) / len(group)) for case in group)
        return visit

    def _visit(self, group: Sequence[Case], number: int) -> tuple[dict[Case, tuple[int, ...]], str]:
        """Measure all arms of the group, side by side unless only one may hold the GPU.

        Returns the replicates of each case, and what disturbed the bursts.
        """
        arms: list[Arm] = [Arm(case, version) for case in group for version in self._alive(case)]
        order = round_order(arms, self.rounds.seed, group[0].label, number)
        together = [[arm] for arm in order] if self.plan.exclusive else [order]
        replicates: dict[Arm, int] = {}
        causes = []
        for position, side_by_side in enumerate(together):
            opened, cause = self._side_by_side(side_by_side, number, position)
            replicates |= opened
            causes += [cause] if cause else []
        counted = {
            case: tuple(replicate for arm, replicate in replicates.items() if arm.case == case) for case in group
        }
        return counted, next(iter(causes), "")

    def _side_by_side(self, order: Sequence[Arm], number: int, first: int) -> tuple[dict[Arm, int], str]:
        """Measure these arms with all of them open at once and their bursts alternating.

        `first` is the position of the first arm in the visit.
        """
        live: dict[Arm, LiveReplicate] = {}
        for position, arm in enumerate(order, first):
            case, version = arm
            self.view.measuring(version, case, number)
            warmup = self.progress.calibration[case.label].warmup
            if replicate := self.replicates.open(arm, number, position=position, warmup=warmup):
                live[arm] = replicate
        witness, own_ns = self._witness(order), 0
        for arm in alternating(order, lambda arm: self.progress.calibration[arm.case.label].bursts):
            if arm in live:
                done = live[arm].burst(self.progress.calibration[arm.case.label].calls, calibrate.BURST_S)
                witness.look()
                if done is None:
                    del live[arm]
                else:
                    own_ns += done.cpu_ns
        cause = witness.disturbance(own_ns / 1e9)
        if spans := witness.spans():
            cases = tuple(dict.fromkeys(case.label for case, _ in order))
            self.run.record(Watched(cases=cases, round=number, cards=spans))
        for replicate in live.values():
            replicate.close()
        return {arm: replicate.number for arm, replicate in live.items()}, cause

    def _witness(self, order: Sequence[Arm]) -> Witness:
        # Containers are the engine's children, which this process's affinity does not bind.
        cpus = self.plan.cpus or (None if ENGINES[self.plan.engine].detached else os.sched_getaffinity(0))
        clients = [self.workers.client(version) for version in {version for _, version in order}]
        groups = [client.pid for client in clients if client and client.pid]
        return Witness.begin(cpus, self.plan.gpus if self.plan.device == "gpu" else None, groups)


def find_undecided(comparison: Comparison, cases: Sequence[Case], closed: Callable[[ArmKey], bool]) -> list[Case]:
    """Return the cases with a contrast, or a claim's statement about one, that more rounds could still decide."""
    unsure = {contrast.pair for contrast in comparison.contrasts if contrast.verdict == "inconclusive"}
    for claim in judge_claims(comparison, comparison.plan.claims):
        open_findings = [finding for finding in claim.findings if finding.answer == "inconclusive"]
        unsure |= {finding.expectation.pair for finding in open_findings if finding.expectation}
    wanted = {label for pair in unsure if not any(map(closed, pair.arms)) for label, _ in pair.arms}
    return [case for case in cases if case.label in wanted]


def patient(plan: Plan) -> frozenset[str]:
    """Return the cases that take the same time according to a claim."""
    expectations = (expectation for claim in plan.claims for expectation in claim.expectations)
    pairs = (expectation.pair for expectation in expectations if expectation.effect == "same")
    return frozenset(label for pair in pairs if pair.metric == "steady" for label, _ in pair.arms)


def _pilot_calls(call_ns: int, calls_s: float) -> int:
    """Return as many calls as the pilot's time allows: a handful of slow ones, but only one that takes seconds."""
    affordable = int(calls_s * 1e9 / max(call_ns, 1))
    return min(MOST_PILOT_CALLS, max(affordable, FEWEST_PILOT_CALLS if call_ns < PILOT_S * 1e9 else 1))
