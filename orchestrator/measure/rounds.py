"""The measurement: a pilot that calibrates, then rounds in which all arms of a case run side by side."""

import random
import time
from collections.abc import Callable, Sequence

from orchestrator.contract import PILOT_ROUND
from orchestrator.measure import pacing
from orchestrator.measure.pacing import Waiting
from orchestrator.measure.pilot import calibrate_group, describe_rounds, patient_cases, typical_spread, visit_s
from orchestrator.measure.prepare_run import PreparedRun
from orchestrator.measure.replicate import Progress
from orchestrator.measure.round_range import RoundRange
from orchestrator.measure.visit import Group, Visit, Visitor
from orchestrator.measure.workers import SLOW_START_TIMEOUT_S, Workers
from orchestrator.model import Arm, ArmKey, Case, Comparison, Postponed
from orchestrator.plan.order import group_linked, round_order
from orchestrator.results.claims import judge_claims
from orchestrator.results.comparison import FIRST_ROUND, judge_run
from orchestrator.stats.looks import FEWEST_ROUNDS
from orchestrator.terminal.progress import View

# A round that has begun may end this much after the budget.
OVERTIME = 1.05


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
        self.visitor = Visitor(prepared, workers, view, self.progress, patient_cases(prepared.plan))
        self.started = time.monotonic() if started is None else started
        # Seconds that the last visit of a case took.
        self.costs: dict[str, float] = {}
        self.postponed: frozenset[str] = frozenset()
        self.wanted = frozenset(arm.key for arm in self.plan.arms())

    def measure(self) -> str:
        """Measure until the last look; return a sentence on why it ended early, or ''."""
        self._warm()
        open_cases: Sequence[Case] = self.rounds.cases
        for number in range(self.rounds.first_round, self.rounds.looks[-1] + 1):
            self._calibrate(open_cases, number)
            open_cases = [case for case in open_cases if self._alive(case)]
            if not open_cases:
                return ""
            begun = time.monotonic()
            groups = self._choose(open_cases)
            if not groups:
                return self._out_of_budget(f"after {_count(number - 1)}")
            left_out = self._round(groups, number)
            took = time.monotonic() - begun
            self.view.round_done(number, self.rounds.looks[-1], len(open_cases), took, self._remaining_s(took, number))
            if left_out:
                return self._out_of_budget(f"during round {number}")
            if number in self.rounds.looks:
                open_cases = find_undecided(judge_run(self.run, at_look=True), open_cases, self._is_closed)
        return ""

    def _out_of_budget(self, when: str) -> str:
        return f"the budget of {self.rounds.budget_s:.0f} s ended the run {when}"

    def _seconds_since_start(self) -> float:
        return time.monotonic() - self.started

    def _left_s(self) -> float:
        """Return the time that the budget leaves."""
        return float("inf") if self.rounds.budget_s is None else self.rounds.budget_s - self._seconds_since_start()

    def _remaining_s(self, took: float, number: int) -> float:
        """Estimate the time left, as an upper limit: cases leave the rotation as their verdicts come in."""
        return min((self.rounds.looks[-1] - number) * took, self._left_s())

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
                replicate = self.visitor.replicates.open(
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

    def _calibrate(self, cases: Sequence[Case], number: int) -> None:
        """Visit the cases that have arms without an effort: all at first, later those whose worker died meanwhile."""
        alive = [case for case in cases if self._alive(case)]
        groups = [group for group in self._groups(alive) if not all(map(self._has_effort, self._arms(group)))]
        visits: list[Visit] = []
        for group in groups:
            order = round_order(self._arms(group), self.rounds.seed, group[0].label, FIRST_ROUND)
            visit = calibrate_group(self.visitor, group, order, may_count=number == FIRST_ROUND)
            seconds = visit_s(visit, self.progress.efforts)
            self.costs.update((case.label, seconds / len(group)) for case in group)
            visits.append(visit)
        if visits and number == self.rounds.first_round:
            self._announce(self._groups([case for case in alive if self._alive(case)]), visits)

    def _has_effort(self, arm: Arm) -> bool:
        return arm.key in self.progress.efforts

    def _arms(self, group: Group) -> list[Arm]:
        return [Arm(case, version) for case in group for version in self._alive(case)]

    def _announce(self, groups: Sequence[Group], visits: Sequence[Visit]) -> None:
        """Say, now that the length of a round is known, what the budget is good for."""
        if self.rounds.budget_s is None or not groups:
            return
        waiting = [self._waiting(group) for group in groups]
        round_s = sum(each.visit_s for each in waiting)
        begun = min(each.rounds for each in waiting)
        fit = begun + pacing.rounds_that_fit(waiting, self._left_s())
        self.view.say(describe_rounds(self.rounds, fit, round_s, typical_spread(visits), self.plan.margin))

    def _groups(self, cases: Sequence[Case]) -> Sequence[Group]:
        """Group the cases that are compared with each other.

        A worker that is itself the replicate can hold only one case, so each case is then a group.
        """
        if self.plan.isolation != "fork":
            return [(case,) for case in cases]
        return group_linked(cases, self.plan.pairs)

    def _waiting(self, group: Group) -> Waiting:
        return Waiting(self._estimate_s([group]), min(self.progress.rounds[case.label] for case in group))

    def _choose(self, cases: Sequence[Case]) -> list[Group]:
        """Return the groups that the next round visits: all, or those that the budget lets come to a verdict."""
        groups = self._groups(cases)
        waiting = [self._waiting(group) for group in groups]
        chosen = pacing.choose(waiting, self._left_s())
        if len(chosen) == len(groups) or all(each.rounds >= FEWEST_ROUNDS for each in waiting):
            self._postpone(frozenset())
            return list(groups) if chosen else []
        self._postpone(
            frozenset(
                case.label
                for index, group in enumerate(groups)
                if index not in chosen and waiting[index].rounds < FEWEST_ROUNDS
                for case in group
            )
        )
        return [groups[index] for index in sorted(chosen)]

    def _postpone(self, labels: frozenset[str]) -> None:
        """Journal and say which cases are left for later, if others than before."""
        if new := sorted(labels - self.postponed):
            self.run.record(Postponed(cases=tuple(new)))
            self.view.say(f"postponed, because the budget is too short for them: {', '.join(new)}")
        self.postponed = labels

    def _round(self, groups: Sequence[Group], number: int) -> int:
        """Visit the groups in random order; return how many of them the budget leaves out."""
        if number == FIRST_ROUND:
            # The pilot of the others was their first round.
            groups = [group for group in groups if not all(self.progress.rounds[case.label] for case in group)]
        order = random.Random(f"{self.rounds.seed}/{number}").sample(groups, len(groups))
        left_out = 0
        for position, group in enumerate(order):
            if self._fits([group]):
                self._visit_quietly(order, position, number)
            else:
                left_out += 1
        return left_out

    def _estimate_s(self, groups: Sequence[Group]) -> float:
        return pacing.estimate_s([case.label for group in groups for case in group], self.costs)

    def _fits(self, groups: Sequence[Group]) -> bool:
        """Return whether the budget lets a round visit these groups as well."""
        if self.rounds.budget_s is None:
            return True
        return self._seconds_since_start() + self._estimate_s(groups) <= self.rounds.budget_s * OVERTIME

    def _visit_quietly(self, order: Sequence[Group], position: int, number: int) -> None:
        """Visit cases that are compared with each other, and repeat the visit if something disturbed it.

        A repeat covers all arms, whatever the times were.
        """
        group = order[position]
        visit = self._visit(group, number)
        if visit.cause:
            again = self._may_repeat(order, position, number)
            for case in group:
                self.run.record(visit.disturbed(case, number, redone=again))
                self.progress.redone[case.label] += again
            if again:
                self._visit(group, number)
        self.progress.rounds.update(case.label for case in group)

    def _may_repeat(self, order: Sequence[Group], position: int, number: int) -> bool:
        if not pacing.within_share((self.progress.redone[case.label] for case in order[position]), number):
            return False
        rest = self._estimate_s(order[position + 1 :])
        needed_s = rest + sum(
            waiting.needed_s - waiting.visit_s
            for waiting in map(self._waiting, order)
            if waiting.rounds < FEWEST_ROUNDS
        )
        return pacing.may_repeat(self._left_s(), self._estimate_s([order[position]]), needed_s)

    def _visit(self, group: Group, number: int) -> Visit:
        arms = list(filter(self._has_effort, self._arms(group)))
        order = round_order(arms, self.rounds.seed, group[0].label, number)
        visit = self.visitor.visit(order, number, self.progress.efforts)
        self.costs.update((case.label, visit.seconds / len(group)) for case in group)
        return visit


def _count(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def find_undecided(comparison: Comparison, cases: Sequence[Case], closed: Callable[[ArmKey], bool]) -> list[Case]:
    """Return the cases with a contrast, or a claim's statement about one, that more rounds could still decide."""
    unsure = {contrast.pair for contrast in comparison.contrasts if contrast.verdict == "inconclusive"}
    for claim in judge_claims(comparison, comparison.plan.claims):
        open_findings = [finding for finding in claim.findings if finding.answer == "inconclusive"]
        unsure |= {finding.expectation.pair for finding in open_findings if finding.expectation}
    wanted = {label for pair in unsure if not any(map(closed, pair.arms)) for label, _ in pair.arms}
    return [case for case in cases if case.label in wanted]
