"""The pilot: it visits the cases as far as the budget holds it, and says how full their rounds are."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from orchestrator.measure import pacing
from orchestrator.measure.pilot import (
    USUAL,
    Calibration,
    calibrate_group,
    describe_percentiles,
    describe_remedy,
    describe_rounds,
    prolong,
    typical_spread,
    visit_s,
)
from orchestrator.measure.rotation import Rotation
from orchestrator.measure.session import Session
from orchestrator.measure.visit import Group, Visit, Visitor
from orchestrator.model import Case, Prolonged
from orchestrator.plan.order import visit_order
from orchestrator.results.evaluation import FIRST_ROUND
from orchestrator.stats.looks import FEWEST_ROUNDS
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.durations import format_minutes

# With fewer, one more round says more than more calls in each: Student's quantile is 1.6 times that of 20 rounds for 4
# of them, and 1.14 times for 8.
ENOUGH_ROUNDS = 8
# A program without a budget is measured for this long, or for the fewest rounds that a verdict takes, which may be a
# little slower than the first.
PROGRAM_S, SLOWER_ROUNDS = 900.0, 1.1


class PilotPhase:
    def __init__(self, session: Session, visitor: Visitor, rotation: Rotation) -> None:
        self._plan = session.plan
        self._run = session.folder
        self._view = session.view
        self._visitor = visitor
        self._rotation = rotation
        self._progress = rotation.progress
        self._budget = rotation.budget
        # By how much the ratio of two arms differs from round to round, once the pilot has shown it.
        self.spread: float | None = None

    def calibrate(self, cases: Sequence[Case], number: int) -> None:
        """Visit the cases that have arms without an effort: all at first, later those whose worker died meanwhile.

        Those that the budget did not hold at first follow when all others are decided.
        """
        groups = self._rotation.groups([case for case in cases if self._rotation.alive(case)])
        lacking = [group for group in groups if not all(map(self._rotation.has_effort, self._rotation.arms(group)))]
        visited = [group for group in groups if group not in lacking]
        calibrations: list[Calibration] = []
        late: list[Group] = []
        if is_later := number > self._rotation.rounds.first_round and bool(visited):
            late = [group for group in lacking if self._rotation.unreached.intersection(case.label for case in group)]
            lacking = [group for group in lacking if group not in late]
        while lacking and (is_later or self._has_room(visited)):
            group = lacking.pop(0)
            visited.append(group)
            order = visit_order(self._rotation.arms(group), self._rotation.rounds.seed, group[0].label, 0)
            may_count = number == FIRST_ROUND and not self._rotation.cold.intersection(case.label for case in group)
            calibration = calibrate_group(self._visitor, group, order, may_count=may_count)
            self._progress.count(disturbed=bool(calibration.visit.cause))
            self._budget.learn_pilot(calibration.visit.seconds)
            calibration.record(self._visitor, calibration.efforts[0])
            # As long as other groups wait for their pilots, what counts is how little these could do.
            self._adopt(calibration, -1 if self._may_shorten(number) else 0, number)
            if calibration.visit.timed:
                calibrations.append(calibration)
        self._rotation.unreached = frozenset(case.label for group in (*lacking, *late) for case in group)
        if calibrations and number == FIRST_ROUND:
            visited = [group for group in visited if any(map(self._rotation.alive, group))]
            if self._may_shorten(number):
                self._fit_efforts(calibrations, visited, number)
            self._announce(visited, groups, [each.visit for each in calibrations])

    def _may_shorten(self, number: int) -> bool:
        """Return whether rounds may be shortened for more verdicts: later ones do what the first did."""
        may_judge = self._rotation.rounds.looks[-1] >= FEWEST_ROUNDS
        return number == FIRST_ROUND and self._rotation.rounds.budget_s is not None and may_judge

    def _adopt(self, calibration: Calibration, level: int, number: int) -> None:
        """Let the rounds of a group have these of the efforts that its pilot suggests."""
        efforts, progress = calibration.efforts[level], self._progress
        progress.efforts.update({arm.key: effort for arm, effort in efforts.items()})
        counts = calibration.is_round(efforts)
        progress.rounds.update(
            {label: before + counts - progress.rounds[label] for label, before in calibration.rounds.items()}
        )
        if number == FIRST_ROUND:
            labels = {case.label for case in calibration.group}
            piloted = {label for label in labels if progress.rounds[label]}
            self._rotation.piloted = self._rotation.piloted - labels | piloted
        if calibration.visit.timed:
            self._budget.learn(calibration.group, visit_s(calibration.visit, progress.efforts))
            self._budget.learn_once(calibration.group, calibration.visit.open_s)

    def _fit_efforts(self, calibrations: Sequence[Calibration], groups: Sequence[Group], number: int) -> None:
        """Choose the fullest efforts with which the budget lets as many groups as possible come to a verdict.

        Generous ones, and visits for first calls alone, only where it holds enough rounds: few say little about their
        own scatter, however long they are, and every round has first calls anyway.
        If it lets no group come to a verdict, the shortest rounds are the best: --resume adds others.
        """
        judged: list[int] = []
        held: list[int] = []
        for level in range(len(calibrations[0].efforts)):
            for calibration in calibrations:
                self._adopt(calibration, level, number)
            waiting = [self._rotation.waiting(group) for group in groups]
            left_s, start_s = self._budget.left_s, self._rotation.start_s
            judged.append(len(pacing.choose_waiting(waiting, left_s, start_s=start_s)))
            round_s = sum(each.round_s for each in waiting) + start_s
            held.append(min(each.rounds for each in waiting) + pacing.rounds_that_fit(round_s, left_s))
        fitting = [
            level
            for level, count in enumerate(judged)
            if count == max(judged) and (level >= USUAL or held[level] >= ENOUGH_ROUNDS)
        ]
        best = fitting[0] if any(judged) and fitting else -1
        shorter = False
        for calibration in calibrations:
            self._adopt(calibration, best, number)
            if calibration.efforts[best] != calibration.efforts[0]:
                calibration.record(self._visitor, calibration.efforts[best])
                shorter = True
        if shorter:
            self._view.say("rounds are shorter than the pilot suggests, because the budget would hold too few of them")

    def _has_room(self, visited: Sequence[Group]) -> bool:
        """Return whether the budget holds the pilot of another group.

        It does not if the groups that were visited need that time to be judged: a few cases with a verdict are worth
        more than many without. As long as none of these can be judged, another one may be shorter.
        """
        if self._rotation.rounds.budget_s is None or not self._budget.pilots:
            return True
        start_s, waiting = self._rotation.start_s, [self._rotation.waiting(group) for group in visited]
        chosen = pacing.choose_waiting(waiting, self._budget.left_s, self._budget.overtime_s, start_s)
        if not chosen:
            return self._budget.left_s > 0
        needed_s = sum(waiting[index].needed_s for index in chosen) + self._budget.usual_pilot_s
        needed_s += max(waiting[index].missing for index in chosen) * start_s
        if len(chosen) < len(visited):
            # The budget is full, unless there is room for more than what was left out.
            needed_s += fmean(each.needed_s for each in waiting)
        return needed_s <= self._budget.left_s + self._budget.overtime_s

    def _announce(self, visited: Sequence[Group], groups: Sequence[Group], visits: Sequence[Visit]) -> None:
        """Say, now that the length of a round is known, what the budget is good for or how long the run takes.

        The budget may not have held the pilots of all `groups`.
        """
        if not visited:
            return
        self._limit_program(visited)
        fit, count, round_s = 0, 1, 0.0
        for count in dict.fromkeys((self._rotation.visits_per_round(visited), 1)):
            waiting = [self._rotation.waiting(group, count) for group in visited]
            round_s = sum(each.round_s for each in waiting) + self._rotation.start_s
            if self._rotation.rounds.budget_s is None:
                break
            left_s = self._budget.left_s - sum(each.behind_s for each in waiting)
            fit = min(each.rounds for each in waiting) + pacing.rounds_that_fit(round_s, left_s)
            if fit >= FEWEST_ROUNDS:
                break
        # A program runs once in a pilot, which does not show how much its time varies.
        self.spread = spread = None if self._plan.program else typical_spread(visits, count)
        if spread is not None and self._rotation.rounds.looks == self._plan.looks:
            self._prolong(fit, spread)
        rounds, remedy = self._rotation.rounds, self._remedy(groups)
        self._view.say(describe_rounds(rounds, fit, round_s, spread, self._plan.margin, remedy))
        for line in describe_percentiles(self._plan, visits, self._progress.efforts, count):
            self._view.say(line)

    def _limit_program(self, groups: Sequence[Group]) -> None:
        """Limit the time of a program without a budget: to the usual one, or to what the fewest rounds take."""
        rounds = self._rotation.rounds
        if not self._plan.program or rounds.budget_s is not None or len(rounds.looks) == 1:
            return
        waiting, start_s = [self._rotation.waiting(group) for group in groups], self._rotation.start_s
        fewest_s = sum(each.needed_s for each in waiting) + max(each.missing for each in waiting) * start_s
        budget_s = max(PROGRAM_S, (self._budget.passed_s + fewest_s) * SLOWER_ROUNDS)
        self._rotation.rounds = replace(rounds, budget_s=budget_s)
        self._budget.budget_s = budget_s
        self._view.say(
            f"without --budget, this program is measured for {format_minutes(budget_s)} min, or until it is decided"
        )

    def _prolong(self, fit: int, spread: float) -> None:
        """Plan further looks, before the second round, where the planned ones would not show the margin."""
        planned, margin = self._rotation.rounds, self._plan.margin
        self._rotation.rounds = rounds = prolong(planned, self._plan.most_rounds, fit, spread, margin)
        if rounds != planned:
            self._run.record(Prolonged(looks=rounds.looks))
            of_such = f"{planned.looks[-1]} of such noise would not show {format_margin(margin)}"
            self._view.say(f"up to {rounds.looks[-1]} rounds: {of_such}")

    def _remedy(self, groups: Sequence[Group]) -> str:
        """Say what a budget that is too short for verdicts on all cases still holds, and what would be enough."""
        start_s, waiting = self._rotation.start_s, [self._rotation.waiting(group) for group in groups]
        chosen = pacing.choose_waiting(waiting, self._budget.left_s, self._budget.overtime_s, start_s)
        needed_s = sum(each.needed_s for each in waiting) + max(each.missing for each in waiting) * start_s
        cases, first = sum(map(len, groups)), sum(len(groups[index]) for index in chosen)
        quickest, group = min(zip(waiting, groups, strict=True), key=lambda each: each[0].needed_s)
        alone_s = self._budget.usual_pilot_s + quickest.needed_s + quickest.missing * start_s
        only = group if not chosen and len(groups) > 1 and alone_s <= (self._rotation.rounds.budget_s or 0.0) else ()
        return describe_remedy(self._budget.passed_s + needed_s, cases, first, [case.label for case in only])
