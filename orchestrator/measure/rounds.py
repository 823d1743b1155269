"""The measurement: a pilot that calibrates, then rounds with new workers, in which a case's arms run side by side."""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from orchestrator.measure import pacing
from orchestrator.measure.budget import Budget
from orchestrator.measure.capacity import read_capacity
from orchestrator.measure.pacing import Waiting
from orchestrator.measure.pilot import (
    GENEROUS,
    Calibration,
    calibrate_group,
    cold_cases,
    describe_percentiles,
    describe_remedy,
    describe_rounds,
    patient_cases,
    prolong,
    typical_spread,
    visit_s,
)
from orchestrator.measure.replicate import Progress
from orchestrator.measure.round_range import RoundRange
from orchestrator.measure.session import Session
from orchestrator.measure.visit import Group, Visit, Visitor, make_gpu_code
from orchestrator.measure.workers import Workers
from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.model import Arm, ArmKey, Case, Comparison, Evaluation, Pair, Postponed, Prolonged, Target
from orchestrator.plan.order import group_linked, round_order
from orchestrator.plan.pairs import find_linked
from orchestrator.results.claims import judge_claims
from orchestrator.results.evaluation import FIRST_ROUND, judge_run
from orchestrator.stats.looks import FEWEST_ROUNDS
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.counts import name_some

# Of the cases that are postponed at once, in one line; the journal and the reports have all.
MOST_NAMED = 10
# With fewer, one more round says more than more calls in each: Student's quantile is 1.6 times that of 20 rounds for 4
# of them, and 1.14 times for 8.
ENOUGH_ROUNDS = 8


class RoundLoop:
    def __init__(
        self,
        session: Session,
        workers: Workers,
        rounds: RoundRange,
        progress: Progress | None = None,
        started: float | None = None,
        keep_workers: bool = False,
    ) -> None:
        self.plan = session.plan
        self.run = session.folder
        self.slow_starts = session.fitting.slow_starts
        self.workers = workers
        self.view = session.view
        self.rounds = rounds
        self.keep_workers = keep_workers
        self.progress = progress or Progress()
        capacity = read_capacity(self.plan, started=True)
        self.visitor = Visitor(session, workers, self.progress, patient_cases(self.plan), capacity)
        self.budget = Budget(rounds.budget_s, time.monotonic() if started is None else started)
        self.postponed: frozenset[str] = frozenset()
        # Those whose pilot the budget has not held until now.
        self.unreached: frozenset[str] = frozenset()
        # Those whose first round has one visit, that of the pilot, until it gets the others.
        self.piloted: frozenset[str] = frozenset()
        self.wanted = frozenset(arm.key for arm in self.plan.arms())
        self.linked = find_linked(self.plan)
        self.cold = cold_cases(self.plan)
        self.decided: set[Pair] = set()

    def measure(self) -> str:
        """Measure until the last look; return a sentence on why it ended early, or ''."""
        self._warm()
        open_cases: Sequence[Case] = self.rounds.cases
        number = self.rounds.first_round
        # The pilot may plan more of them.
        while number <= self.rounds.looks[-1]:
            open_cases = self._find_comparable(open_cases)
            self._calibrate(open_cases, number)
            open_cases = self._find_comparable(open_cases)
            if not open_cases:
                return ""
            groups, visits = self._choose(open_cases, number)
            if not groups:
                return self._end(open_cases, f"after {_count(self._rounds_before(number))}")
            left_out = self._round(groups, number, visits)
            self.workers.sync(number)
            if left_out:
                return self._end(open_cases, f"during round {number}")
            if number in self.rounds.looks:
                evaluation = judge_run(self.run, at_look=True)
                self._show_decided(evaluation, number)
                open_cases = find_undecided(evaluation, open_cases, self._is_closed)
            number += 1
        return ""

    def _show_decided(self, evaluation: Evaluation, number: int) -> None:
        comparisons = (*evaluation.comparisons, *evaluation.of_metrics)
        decided = {comparison.pair: comparison for comparison in comparisons if comparison.verdict != "inconclusive"}
        new = [describe_decision(comparison) for pair, comparison in decided.items() if pair not in self.decided]
        self.decided |= decided.keys()
        self.view.look_done(number, new, len(decided), len(comparisons))

    def _end(self, cases: Iterable[Case], when: str) -> str:
        """End the run at its budget, which leaves cases with too few rounds for later."""
        waiting = [(group, self._waiting(group)) for group in self._groups(list(cases))]
        self._postpone(case.label for group, each in waiting if each.is_short for case in group)
        return f"the budget of {self.rounds.budget_s:.0f} s ended the run {when}"

    def _rounds_before(self, number: int) -> int:
        """Return how many rounds were measured before this one; before the first it may have been the pilot."""
        return max([number - 1, *self.progress.rounds.values()])

    def _is_closed(self, arm: ArmKey) -> bool:
        return arm in self.progress.ended or arm.target not in self.workers.targets()

    def _alive(self, case: Case) -> list[Target]:
        arms = [ArmKey(case.label, target) for target in self.workers.targets()]
        return [arm.target for arm in arms if arm in self.wanted and not self._is_closed(arm)]

    def _find_comparable(self, cases: Sequence[Case]) -> list[Case]:
        """Return the cases of which something can still be compared, and name the others."""
        left = [case.label for case in cases if not self._is_comparable(case)]
        if left:
            names = name_some(left, MOST_NAMED, "case")
            self.view.say(f"not measured any further, because nothing is left to compare: {names}")
        return [case for case in cases if case.label not in left] if left else list(cases)

    def _is_comparable(self, case: Case) -> bool:
        """Return whether two arms are left, or one that is compared with another case or of which a claim speaks."""
        return len(self._alive(case)) > 1 or any(
            self.wanted.issuperset(arms) and not any(map(self._is_closed, arms)) for arms in self.linked[case.label]
        )

    def _warm(self) -> None:
        if self.slow_starts:
            make_gpu_code(
                self.visitor,
                self.slow_starts,
                self.rounds.cases,
                lambda arm: arm not in self.wanted or self._is_closed(arm),
            )
            self.budget.restart()

    def _calibrate(self, cases: Sequence[Case], number: int) -> None:
        """Visit the cases that have arms without an effort: all at first, later those whose worker died meanwhile.

        Those that the budget did not hold at first follow when all others are decided.
        """
        groups = self._groups([case for case in cases if self._alive(case)])
        lacking = [group for group in groups if not all(map(self._has_effort, self._arms(group)))]
        visited = [group for group in groups if group not in lacking]
        calibrations: list[Calibration] = []
        late: list[Group] = []
        if is_later := number > self.rounds.first_round and bool(visited):
            late = [group for group in lacking if self.unreached.intersection(case.label for case in group)]
            lacking = [group for group in lacking if group not in late]
        while lacking and (is_later or self._has_room(visited)):
            group = lacking.pop(0)
            visited.append(group)
            order = round_order(self._arms(group), self.rounds.seed, group[0].label, FIRST_ROUND)
            may_count = number == FIRST_ROUND and not self.cold.intersection(case.label for case in group)
            calibration = calibrate_group(self.visitor, group, order, may_count=may_count)
            self._count(calibration.visit)
            self.budget.learn_pilot(calibration.visit.seconds)
            calibration.record(self.visitor, calibration.efforts[0])
            # As long as other groups wait for their pilots, what counts is how little these could do.
            self._adopt(calibration, -1 if self._may_shorten(number) else 0, number)
            if calibration.visit.timed:
                calibrations.append(calibration)
        self.unreached = frozenset(case.label for group in (*lacking, *late) for case in group)
        if calibrations and number == FIRST_ROUND:
            visited = [group for group in visited if any(map(self._alive, group))]
            if self._may_shorten(number):
                self._fit_efforts(calibrations, visited, number)
            self._announce(visited, groups, [each.visit for each in calibrations])

    def _may_shorten(self, number: int) -> bool:
        """Return whether rounds may be shortened for more verdicts: later ones do what the first did."""
        may_judge = self.rounds.looks[-1] >= FEWEST_ROUNDS
        return number == FIRST_ROUND and self.rounds.budget_s is not None and may_judge

    def _adopt(self, calibration: Calibration, level: int, number: int) -> None:
        """Let the rounds of a group have these of the efforts that its pilot suggests."""
        efforts, progress = calibration.efforts[level], self.progress
        progress.efforts.update({arm.key: effort for arm, effort in efforts.items()})
        counts = calibration.is_round(efforts)
        progress.rounds.update(
            {label: before + counts - progress.rounds[label] for label, before in calibration.rounds.items()}
        )
        if number == FIRST_ROUND:
            labels = {case.label for case in calibration.group}
            self.piloted = self.piloted - labels | {label for label in labels if progress.rounds[label]}
        if calibration.visit.timed:
            self.budget.learn(calibration.group, visit_s(calibration.visit, progress.efforts))
            self.budget.learn_once(calibration.group, calibration.visit.open_s)

    def _fit_efforts(self, calibrations: Sequence[Calibration], groups: Sequence[Group], number: int) -> None:
        """Choose the fullest efforts with which the budget lets as many groups as possible come to a verdict.

        Generous ones only where it holds enough rounds: few say little about their own scatter, however long they are.
        If it lets no group come to a verdict, the shortest rounds are the best: --resume adds others.
        """
        judged: list[int] = []
        held: list[int] = []
        for level in range(len(calibrations[0].efforts)):
            for calibration in calibrations:
                self._adopt(calibration, level, number)
            waiting = [self._waiting(group) for group in groups]
            judged.append(len(pacing.choose_waiting(waiting, self.budget.left_s, start_s=self._start_s)))
            round_s = sum(each.round_s for each in waiting) + self._start_s
            held.append(min(each.rounds for each in waiting) + pacing.rounds_that_fit(round_s, self.budget.left_s))
        fitting = [
            level
            for level, count in enumerate(judged)
            if count == max(judged) and (level >= GENEROUS or held[level] >= ENOUGH_ROUNDS)
        ]
        best = fitting[0] if any(judged) and fitting else -1
        shorter = False
        for calibration in calibrations:
            self._adopt(calibration, best, number)
            if calibration.efforts[best] != calibration.efforts[0]:
                calibration.record(self.visitor, calibration.efforts[best])
                shorter = True
        if shorter:
            self.view.say("rounds are shorter than the pilot suggests, because the budget would hold too few of them")

    def _has_room(self, visited: Sequence[Group]) -> bool:
        """Return whether the budget holds the pilot of another group.

        It does not if the groups that were visited need that time to be judged: a few cases with a verdict are worth
        more than many without. As long as none of these can be judged, another one may be shorter.
        """
        if self.rounds.budget_s is None or not self.budget.pilots:
            return True
        waiting = [self._waiting(group) for group in visited]
        chosen = pacing.choose_waiting(waiting, self.budget.left_s, self.budget.overtime_s, self._start_s)
        if not chosen:
            return self.budget.left_s > 0
        needed_s = sum(waiting[index].needed_s for index in chosen) + self.budget.usual_pilot_s
        needed_s += max(waiting[index].missing for index in chosen) * self._start_s
        if len(chosen) < len(visited):
            # The budget is full, unless there is room for more than what was left out.
            needed_s += fmean(each.needed_s for each in waiting)
        return needed_s <= self.budget.left_s + self.budget.overtime_s

    def _find_reached(self, cases: Iterable[Case]) -> list[Case]:
        return [case for case in cases if case.label not in self.unreached]

    def _has_effort(self, arm: Arm) -> bool:
        return arm.key in self.progress.efforts

    def _arms(self, group: Group) -> list[Arm]:
        return [Arm(case, target) for case in group for target in self._alive(case)]

    def _announce(self, visited: Sequence[Group], groups: Sequence[Group], visits: Sequence[Visit]) -> None:
        """Say, now that the length of a round is known, what the budget is good for or how long the run takes.

        The budget may not have held the pilots of all `groups`.
        """
        if not visited:
            return
        fit, count, round_s = 0, 1, 0.0
        for count in dict.fromkeys((self._visits_per_round(visited), 1)):
            waiting = [self._waiting(group, count) for group in visited]
            round_s = sum(each.round_s for each in waiting) + self._start_s
            if self.rounds.budget_s is None:
                break
            left_s = self.budget.left_s - sum(each.behind_s for each in waiting)
            fit = min(each.rounds for each in waiting) + pacing.rounds_that_fit(round_s, left_s)
            if fit >= FEWEST_ROUNDS:
                break
        spread = typical_spread(visits, count)
        if self.rounds.looks == self.plan.looks:
            self._prolong(fit, spread)
        self.view.say(describe_rounds(self.rounds, fit, round_s, spread, self.plan.margin, self._remedy(groups)))
        for line in describe_percentiles(self.plan, visits, self.progress.efforts, count):
            self.view.say(line)

    def _prolong(self, fit: int, spread: float) -> None:
        """Plan further looks, before the second round, where the planned ones would not show the margin."""
        planned, self.rounds = self.rounds, prolong(self.rounds, self.plan.most_rounds, fit, spread, self.plan.margin)
        if self.rounds != planned:
            self.run.record(Prolonged(looks=self.rounds.looks))
            last, margin = planned.looks[-1], format_margin(self.plan.margin)
            self.view.say(f"up to {self.rounds.looks[-1]} rounds: {last} of such noise would not show {margin}")

    def _remedy(self, groups: Sequence[Group]) -> str:
        """Say what a budget that is too short for verdicts on all cases still holds, and what would be enough."""
        waiting = [self._waiting(group) for group in groups]
        chosen = pacing.choose_waiting(waiting, self.budget.left_s, self.budget.overtime_s, self._start_s)
        needed_s = sum(each.needed_s for each in waiting) + max(each.missing for each in waiting) * self._start_s
        cases, first = sum(map(len, groups)), sum(len(groups[index]) for index in chosen)
        quickest, group = min(zip(waiting, groups, strict=True), key=lambda each: each[0].needed_s)
        alone_s = self.budget.usual_pilot_s + quickest.needed_s + quickest.missing * self._start_s
        only = group if not chosen and len(groups) > 1 and alone_s <= (self.rounds.budget_s or 0.0) else ()
        return describe_remedy(self.budget.passed_s + needed_s, cases, first, [case.label for case in only])

    def _groups(self, cases: Sequence[Case]) -> Sequence[Group]:
        """Group the cases that are compared with each other.

        A worker that is itself the replicate can hold only one case, so each case is then a group.
        """
        if self.plan.isolation != "fork":
            return [(case,) for case in cases]
        return group_linked(cases, self.plan.pairs)

    @property
    def _start_s(self) -> float:
        """The seconds that the workers of a round take to start, if each round has new ones."""
        return 0.0 if self.keep_workers else self.workers.start_s

    def _visits_per_round(self, groups: Sequence[Group]) -> int:
        rounds = min((self.progress.rounds[case.label] for group in groups for case in group), default=0)
        return pacing.visits_per_round(
            self._start_s,
            self.budget.estimate_s(groups),
            self.budget.left_s,
            rounds,
            self.rounds.looks[-1],
            self.budget.estimate_s(filter(self._is_piloted, groups)),
        )

    def _waiting(self, group: Group, visits: int = 1) -> Waiting:
        rounds = min(self.progress.rounds[case.label] for case in group)
        postponed = any(case.label in self.postponed for case in group)
        behind_s = (visits - 1) * self.budget.estimate_s([group]) if self._is_piloted(group) else 0.0
        return Waiting(self._round_s(group, visits), rounds, postponed, behind_s)

    def _is_piloted(self, group: Group) -> bool:
        return any(case.label in self.piloted for case in group)

    def _round_s(self, group: Group, visits: int) -> float:
        """Return the seconds of a round that these cases take."""
        rounds = min(self.progress.rounds[case.label] for case in group)
        once = self._count_once(group, rounds + 1, visits) * self.budget.estimate_once_s(group)
        return visits * self.budget.estimate_s([group]) + once

    def _count_once(self, group: Group, nth: int, visits: int) -> int:
        """Return how often their nth round visits these cases for their first calls alone.

        That is as often as was planned, less whole visits. Where only times end the rounds, the first rounds do it: a
        case that needs more rounds gets enough first calls with them.
        """
        if nth > FEWEST_ROUNDS and not self.plan.decides and not self.cold.intersection(case.label for case in group):
            return 0
        planned = (effort.once for arm in self._arms(group) if (effort := self.progress.efforts.get(arm.key)))
        return max(max(planned, default=0) - (visits - 1), 0)

    def _choose(self, cases: Sequence[Case], number: int) -> tuple[list[Group], int]:
        """Return the groups that the next round visits, and how often.

        These are all groups, or those that the budget lets come to a verdict. More of them do so with single visits.
        """
        groups = self._groups(self._find_reached(cases))
        overtime_s = 0.0 if number == self.rounds.first_round else self.budget.overtime_s
        for visits in dict.fromkeys((self._visits_per_round(groups), 1)):
            waiting = [self._waiting(group, visits) for group in groups]
            enough = pacing.choose_waiting(waiting, self.budget.left_s, overtime_s, self._start_s)
            if len(enough) == len(groups):
                break
        chosen = enough or pacing.fill(waiting, self.budget.left_s - self._start_s)
        left_out = [index for index, each in enumerate(waiting) if each.is_short and index not in chosen]
        self._postpone([*self.unreached, *(case.label for index in left_out for case in groups[index])])
        if chosen and not any(each.is_short for each in waiting):
            # Which of them the last round leaves out is left to chance.
            return list(groups), visits
        return [groups[index] for index in sorted(chosen)], visits

    def _postpone(self, cases: Iterable[str]) -> None:
        """Journal and say which cases are left for later, if others than before."""
        labels = frozenset(cases)
        if new := sorted(labels - self.postponed):
            self.run.record(Postponed(cases=tuple(new)))
            self.view.say(
                f"postponed, because the budget is too short for them: {name_some(new, MOST_NAMED, 'case')}; --resume "
                "measures them"
            )
        self.postponed = labels

    def _round(self, groups: Sequence[Group], number: int, visits: int) -> int:
        """Visit the groups in random order, with new workers; return how many of them the budget leaves out."""
        groups = [group for group in groups if any(map(self._has_effort, self._arms(group)))]
        # The pilot was their first visit of the first round.
        visited = list(filter(self._is_piloted, groups))
        pending = [group for group in groups if group not in visited]
        self.piloted = frozenset()
        begun_s = self.budget.passed_s
        if number > self.rounds.first_round and not self.keep_workers:
            self.workers.renew({arm.target for group in groups for arm in self._arms(group)}, number)
        draw = random.Random(f"{self.rounds.seed}/{number}")
        order, left_out = draw.sample(pending, len(pending)), 0
        for visit in range(visits):
            for position, group in enumerate(order):
                if self.budget.fits(group):
                    self._visit_quietly(order, position, number, visit)
                    visited += [group] if visit == 0 else []
                elif visit == 0:
                    left_out += 1
            order = draw.sample(groups, len(groups))
        self._visit_once(visited, number, visits, draw)
        if not pending and visits == 1:
            return 0
        last, round_s = self.rounds.looks[-1], sum(self._round_s(group, visits) for group in order) + self._start_s
        # An upper limit: cases leave the rotation as their verdicts come in.
        ahead_s = min((last - number) * round_s, self.budget.left_s)
        cases = sum(map(len, order))
        self.view.round_done(number, last, cases, self.budget.passed_s - begun_s, ahead_s)
        return left_out

    def _visit_quietly(self, order: Sequence[Group], position: int, number: int, turn: int) -> None:
        """Visit cases that are compared with each other, and repeat the visit if something unusual disturbed it.

        A repeat covers all arms, whatever the times were.
        """
        group = order[position]
        is_exception = pacing.is_exception(self.progress.disturbed, self.progress.visits)
        visit = self._visit(group, number, turn)
        self.progress.rounds.update(case.label for case in group if turn == 0)
        if not visit.cause:
            return
        again = is_exception and self._may_repeat(order, position, number)
        for case in group:
            self.run.record(visit.describe_disturbance(case, number, redone=again))
            self.progress.redone[case.label] += again
        if again:
            self._visit(group, number, turn)

    def _visit_once(self, groups: Sequence[Group], number: int, visits: int, draw: random.Random) -> None:
        """Visit cases for their first calls alone, as often as was planned, and each time in another order."""
        counts = {
            group: self._count_once(group, min(self.progress.rounds[case.label] for case in group), visits)
            for group in groups
        }
        for turn in range(max(counts.values(), default=0)):
            for group in draw.sample(groups, len(groups)):
                if turn < counts[group] and self.budget.fits(group, once=True):
                    arms = list(filter(self._has_effort, self._arms(group)))
                    order = round_order(arms, self.rounds.seed, group[0].label, number + visits + turn)
                    self.budget.learn_once(group, self.visitor.visit_once(order, number))

    def _may_repeat(self, order: Sequence[Group], position: int, number: int) -> bool:
        waiting = [self._waiting(group) for group in order]
        repeated = [self.progress.redone[case.label] for case in order[position]]
        return pacing.within_share(repeated, number) and pacing.may_repeat(
            waiting[position].round_s, waiting[: position + 1], waiting[position + 1 :], self.budget.left_s
        )

    def _visit(self, group: Group, number: int, turn: int) -> Visit:
        arms = list(filter(self._has_effort, self._arms(group)))
        order = round_order(arms, self.rounds.seed, group[0].label, number + turn)
        visit = self.visitor.visit(order, number, self.progress.efforts)
        if len(visit.timed) == len(order):
            # Otherwise it took the time of a death, or of another worker's start.
            self.budget.learn(group, visit.seconds)
        self._count(visit)
        return visit

    def _count(self, visit: Visit) -> None:
        self.progress.visits += 1
        self.progress.disturbed += bool(visit.cause)


def _count(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def describe_decision(comparison: Comparison) -> str:
    old, new = comparison.pair.arms
    metric = comparison.pair.metric
    against = "" if old.case == new.case else f" against {old.case}"
    figure = METRICS[metric].describe(comparison)
    verdict = describe_verdict(metric, comparison.shown_verdict) + (f" ({figure})" if figure else "")
    return f"{metric} of {new.case} in {new.target}{against}: {verdict}"


def find_undecided(evaluation: Evaluation, cases: Sequence[Case], closed: Callable[[ArmKey], bool]) -> list[Case]:
    """Return the cases with a comparison, or a claim's statement about one, that more rounds could still decide."""
    deciding = [each for metric in evaluation.plan.decides for each in evaluation.metrics.get(metric, ())]
    unsure: set[tuple[ArmKey, ...]] = {
        each.pair.arms for each in (*evaluation.comparisons, *deciding) if each.verdict == "inconclusive"
    }
    for claim in judge_claims(evaluation, evaluation.plan.claims):
        for statement in (finding.statement for finding in claim.findings if finding.is_open):
            unsure.update([pair.arms for pair in statement.pairs] or [statement.arms])
    wanted = {label for arms in unsure if not any(map(closed, arms)) for label, _ in arms}
    return [case for case in cases if case.label in wanted]
