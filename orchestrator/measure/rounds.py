"""The measurement: a pilot that calibrates, then rounds with new workers, in which a case's arms run side by side."""

import random
import time
from collections.abc import Iterable, Sequence
from statistics import median

from orchestrator.measure import pacing
from orchestrator.measure.budget import Budget
from orchestrator.measure.capacity import read_capacity
from orchestrator.measure.pilot import patient_cases
from orchestrator.measure.pilot_phase import PilotPhase
from orchestrator.measure.rotation import Rotation
from orchestrator.measure.round_range import RoundRange
from orchestrator.measure.session import Session
from orchestrator.measure.visit import Group, Visit, Visitor, compile_gpu_code
from orchestrator.measure.workers import Workers
from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.model import Case, Comparison, Evaluation, Pair, Postponed
from orchestrator.plan.order import visit_order
from orchestrator.results.evaluation import judge_run
from orchestrator.results.past import Progress, choose_cases, find_undecided_arms
from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.futility import can_decide, find_smallest_shown
from orchestrator.stats.looks import FEWEST_ROUNDS, Stretch, make_schedule
from orchestrator.stats.slowdown import LARGEST_SHOWN, format_slowdown
from orchestrator.stats.verdict import smallest_shown
from orchestrator.terminal.counts import format_count, name_some
from orchestrator.terminal.view import RoundDone

# A message names at most this many cases, in one line; the journal and the reports list all.
MOST_NAMED = 10


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
        self.run = session.folder
        self.view = session.view
        self.slow_starts = session.fitting.slow_starts
        self.workers = workers
        self.keep_workers = keep_workers
        self.progress = progress or Progress()
        self.budget = Budget(rounds.budget_s, time.monotonic() if started is None else started)
        capacity = read_capacity(session.plan, started=True)
        self.visitor = Visitor(session, workers, self.progress, patient_cases(session.plan), capacity)
        self.rotation = Rotation(session.plan, workers, rounds, self.progress, self.budget, keep_workers)
        if rounds.undecided is not None:
            self.rotation.keep_undecided(rounds.undecided)
        self.pilots = PilotPhase(session, self.visitor, self.rotation)
        self.decided: set[Pair] = set()
        # This is the spread of open comparisons at the last look.
        self.seen_spread: float | None = None

    def measure(self) -> str:
        """Measure until the last look; return a sentence on why it ended early, or ''."""
        self._warm()
        open_cases: Sequence[Case] = self.rotation.rounds.cases
        number = self.rotation.rounds.first_round
        # The pilot may plan more rounds.
        while number <= self.rotation.rounds.looks[-1]:
            open_cases = self._find_comparable(open_cases)
            self.pilots.calibrate(open_cases, number)
            open_cases = self._find_comparable(open_cases)
            if not open_cases:
                return ""
            groups, visits, later = self.rotation.choose(open_cases, number)
            self._postpone(later)
            if not groups:
                # Before the first round, the pilot may already count as one.
                done = max([number - 1, *self.progress.rounds.values()])
                return self._end(open_cases, f"after {'1 round' if done == 1 else f'{done} rounds'}")
            left_out = self._round(groups, number, visits)
            self.workers.sync(number)
            if left_out:
                return self._end(open_cases, f"during round {number}")
            looks = self.rotation.rounds.looks
            if number in looks or (self.view.draws_tables and number < looks[0]):
                evaluation = judge_run(self.run, at_look=True)
                self.view.show_table(evaluation)
            if number in looks:
                self._show_decided(evaluation, number)
                undecided = find_undecided_arms(evaluation, self.rotation.is_closed)
                open_cases = choose_cases(open_cases, undecided)
                self.rotation.keep_undecided(undecided)
                enough = self.rotation.rounds.enough
                if how := (enough and enough(evaluation)) or self._find_futile(evaluation, open_cases, number):
                    return how
            number += 1
        return ""

    def _show_decided(self, evaluation: Evaluation, number: int) -> None:
        comparisons = (*evaluation.comparisons, *evaluation.of_metrics)
        decided = {comparison.pair: comparison for comparison in comparisons if comparison.verdict != "inconclusive"}
        new = [describe_decision(comparison) for pair, comparison in decided.items() if pair not in self.decided]
        spreads = [each.spread for each in comparisons if each.spread and each.pair not in decided]
        self.seen_spread = median(spreads) if spreads else self.seen_spread
        self.decided |= decided.keys()
        self.view.look_done(number, new, len(decided), len(comparisons))

    def _find_futile(self, evaluation: Evaluation, open_cases: Sequence[Case], number: int) -> str:
        """Return why the measurement of a program ends if the rounds left in its budget can decide nothing, or ''."""
        rounds = self.rotation.rounds
        labels = {case.label for case in open_cases}
        open_ = [
            each
            for each in evaluation.comparisons
            if each.verdict == "inconclusive" and labels.intersection(label for label, _ in each.pair.arms)
        ]
        if not evaluation.plan.program or rounds.keep_going or not open_:
            return ""
        if any(each.verdict == "inconclusive" for each in evaluation.of_metrics):
            # The user asked for rounds for a metric, and their result cannot be predicted.
            return ""
        round_s = sum(self.rotation.round_s(group, 1) for group in self.rotation.groups(list(open_cases)))
        ahead = rounds.looks[-1] - number
        if rounds.budget_s is not None:
            ahead = min(ahead, pacing.rounds_that_fit(round_s + self.rotation.start_s, self.budget.left_s))
        if ahead < 1 or any(can_decide(each, ahead, rounds.looks, evaluation.plan.margin) for each in open_):
            return ""
        shown = [find_smallest_shown(each, ahead, rounds.looks) for each in open_ if each.spread is not None]
        least = min(shown, default=LARGEST_SHOWN)
        size = f": they show no difference below {format_slowdown(least)}" if least < LARGEST_SHOWN else ""
        more = format_count(ahead, "more round")
        why = f"the {more} of its budget would decide nothing{size}"
        return f"the run ended after {number} rounds, since {why}; --keep-going continues anyway"

    def _end(self, cases: Iterable[Case], when: str) -> str:
        """End the run at its budget, which leaves cases with too few rounds for later."""
        waiting = [(group, self.rotation.waiting(group)) for group in self.rotation.groups(list(cases))]
        self._postpone(case.label for group, each in waiting if each.is_short for case in group)
        return f"the budget of {self.rotation.rounds.budget_s:.0f} s ended the run {when}"

    def _find_comparable(self, cases: Sequence[Case]) -> list[Case]:
        """Return the cases that still have something to compare, and report the rest by name."""
        left = [case.label for case in cases if not self.rotation.is_comparable(case)]
        if left:
            names = name_some(left, MOST_NAMED, "case")
            self.view.say(f"not measured any further, because nothing is left to compare: {names}")
        return [case for case in cases if case.label not in left] if left else list(cases)

    def _warm(self) -> None:
        if self.slow_starts:
            compile_gpu_code(
                self.visitor,
                self.slow_starts,
                self.rotation.rounds.cases,
                lambda arm: not self.rotation.is_open(arm),
            )
            self.budget.restart()

    def _postpone(self, cases: Iterable[str]) -> None:
        """Record and report which cases are postponed, if there are new ones."""
        labels = frozenset(cases)
        if new := sorted(labels - self.rotation.postponed):
            self.run.record(Postponed(cases=tuple(new)))
            self.view.say(
                f"postponed, because the budget is too short for them: {name_some(new, MOST_NAMED, 'case')}; --resume "
                "measures them"
            )
        self.rotation.postponed = labels

    def _round(self, groups: Sequence[Group], number: int, visits: int) -> int:
        """Visit the groups in random order, with new workers; return how many of them the budget leaves out."""
        groups = [group for group in groups if any(map(self.rotation.has_effort, self.rotation.arms(group)))]
        # For these groups, the pilot was the first visit of the first round.
        visited = list(filter(self.rotation.is_piloted, groups))
        pending = [group for group in groups if group not in visited]
        self.rotation.piloted = frozenset()
        begun_s = self.budget.passed_s
        if number > self.rotation.rounds.first_round and not self.keep_workers:
            self.workers.renew({arm.target for group in groups for arm in self.rotation.arms(group)}, number)
        draw = random.Random(f"{self.rotation.rounds.seed}/{number}")
        order, left_out = draw.sample(pending, len(pending)), 0
        for visit in range(visits):
            for position, group in enumerate(order):
                if self.budget.fits(group):
                    self._visit_and_repeat(order, position, number, visit, visits)
                    visited += [group] if visit == 0 else []
                elif visit == 0:
                    left_out += 1
            order = draw.sample(groups, len(groups))
        self._visit_once(visited, number, visits, draw)
        looks = self.rotation.rounds.looks
        round_s = sum(self.rotation.round_s(group, visits) for group in order) + self.rotation.start_s
        # The pilot may have been the first round.
        took_s = self.budget.passed_s - begun_s if pending or visits > 1 else round_s
        next_look = next((look for look in looks if look > number), None)
        self.view.round_done(
            RoundDone(
                number=number,
                most=looks[-1],
                cases=sum(map(len, order)),
                took_s=took_s,
                left_s=min((looks[-1] - number) * round_s, self.budget.left_s),
                next_look=next_look,
                next_s=(next_look - number) * round_s if next_look else None,
                shows=self._foresee(next_look),
            )
        )
        return left_out

    def _foresee(self, look: int | None) -> float | None:
        """Return the smallest difference that a look typically shows, or None if that is unknown or very large."""
        if look is None or self.spread is None or look < FEWEST_ROUNDS:
            return None
        level = make_schedule([Stretch(self.rotation.rounds.looks)]).level(look, DIFFERENCE_ERROR)
        shown = smallest_shown(self.spread, look, level)
        return shown if shown <= LARGEST_SHOWN else None

    @property
    def spread(self) -> float | None:
        """How much the ratio of two arms varies from round to round, as seen at the last look or in the pilot."""
        return self.seen_spread or self.pilots.spread

    def _visit_and_repeat(self, order: Sequence[Group], position: int, number: int, turn: int, visits: int) -> None:
        """Visit cases that are compared with each other, and repeat the visit if something unusual disturbed it.

        A repeat covers all arms, whatever the times were.
        """
        group = order[position]
        is_exception = pacing.is_exception(self.progress.disturbed, self.progress.visits)
        nth = (number - 1) * visits + turn
        visit = self._visit(group, number, nth)
        self.progress.rounds.update(case.label for case in group if turn == 0)
        if not visit.cause:
            return
        again = is_exception and self._may_repeat(order, position, number)
        for case in group:
            self.run.record(visit.describe_disturbance(case, number, redone=again))
            self.progress.redone[case.label] += again
        if again:
            self._visit(group, number, nth)

    def _visit_once(self, groups: Sequence[Group], number: int, visits: int, draw: random.Random) -> None:
        """Visit cases for their first calls alone, as often as was planned, and each time in another order."""
        counts = {group: self.rotation.count_once(group, self.rotation.rounds_of(group), visits) for group in groups}
        most = max(counts.values(), default=0)
        for turn in range(most):
            for group in draw.sample(groups, len(groups)):
                if turn < counts[group] and self.budget.fits(group, once=True):
                    arms = list(filter(self.rotation.has_effort, self.rotation.arms(group)))
                    once = f"{group[0].label}, first calls"
                    order = visit_order(arms, self.rotation.rounds.seed, once, (number - 1) * most + turn)
                    self.budget.learn_once(group, self.visitor.visit_once(order, number))

    def _may_repeat(self, order: Sequence[Group], position: int, number: int) -> bool:
        waiting = [self.rotation.waiting(group) for group in order]
        repeated = [self.progress.redone[case.label] for case in order[position]]
        return pacing.within_share(repeated, number) and pacing.may_repeat(
            waiting[position].round_s, waiting[: position + 1], waiting[position + 1 :], self.budget.left_s
        )

    def _visit(self, group: Group, number: int, nth: int) -> Visit:
        arms = list(filter(self.rotation.has_effort, self.rotation.arms(group)))
        order = visit_order(arms, self.rotation.rounds.seed, group[0].label, nth)
        visit = self.visitor.visit(order, number, self.progress.efforts)
        if len(visit.timed) == len(order):
            # Otherwise its time includes a death, or the start of another worker.
            self.budget.learn(group, visit.seconds)
        self.progress.count(disturbed=bool(visit.cause))
        return visit


def describe_decision(comparison: Comparison) -> str:
    old, new = comparison.pair.arms
    metric = comparison.pair.metric
    against = "" if old.case == new.case else f" against {old.case}"
    figure = METRICS[metric].describe(comparison)
    verdict = describe_verdict(metric, comparison.shown_verdict) + (f" ({figure})" if figure else "")
    return f"{metric} of {new.case} in {new.target}{against}: {verdict}"
