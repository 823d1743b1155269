"""The cases that are still measured: what is left to compare, and which of them a round visits."""

from collections.abc import Sequence

from orchestrator.measure import pacing
from orchestrator.measure.budget import Budget
from orchestrator.measure.pacing import Waiting
from orchestrator.measure.pilot import cold_cases
from orchestrator.measure.round_range import RoundRange
from orchestrator.measure.visit import Group
from orchestrator.measure.workers import Workers
from orchestrator.model import Arm, ArmKey, Case, Plan, Target
from orchestrator.plan.pairs import find_linked, group_linked, is_trend
from orchestrator.results.past import Progress
from orchestrator.stats.looks import FEWEST_ROUNDS

# In a run of at least this many targets, a target whose verdicts have come gets no more rounds. In a smaller one it
# would save little, and other metrics of that target would have fewer figures. A trend compares neighbours as
# well, and these need the rounds.
MATRIX_FROM = 5


class Rotation:
    def __init__(
        self, plan: Plan, workers: Workers, rounds: RoundRange, progress: Progress, budget: Budget, keep_workers: bool
    ) -> None:
        self.plan = plan
        self.rounds = rounds
        self.progress = progress
        self.budget = budget
        # These are left for later, because the budget is too short for them.
        self.postponed: frozenset[str] = frozenset()
        # The budget has had no room for the pilots of these until now.
        self.unreached: frozenset[str] = frozenset()
        # The pilot is the only visit in the first round of these, until the round gets the others.
        self.piloted: frozenset[str] = frozenset()
        self.cold = cold_cases(plan)
        self._workers = workers
        self._keep_workers = keep_workers
        self._wanted = frozenset(arm.key for arm in plan.arms())
        # Rounds visit only these; before the first look, all.
        self._undecided = self._wanted
        self._linked = find_linked(plan)

    def is_closed(self, arm: ArmKey) -> bool:
        return arm in self.progress.ended or arm.target not in self._workers.targets()

    def alive(self, case: Case) -> list[Target]:
        arms = [ArmKey(case.label, target) for target in self._workers.targets()]
        return [arm.target for arm in arms if self.is_open(arm)]

    def is_comparable(self, case: Case) -> bool:
        """Return whether two arms are left, or one that is compared with another case or that a claim is about."""
        return len(self.alive(case)) > 1 or any(
            self._wanted.issuperset(arms) and not any(map(self.is_closed, arms)) for arms in self._linked[case.label]
        )

    def is_open(self, arm: ArmKey) -> bool:
        return arm in self._wanted and not self.is_closed(arm)

    def rounds_of(self, group: Group) -> int:
        """Return how many rounds all of these cases have."""
        return min(self.progress.rounds[case.label] for case in group)

    def has_effort(self, arm: Arm) -> bool:
        return arm.key in self.progress.efforts

    def keep_undecided(self, arms: frozenset[ArmKey]) -> None:
        """Leave out the other arms, if the run has many targets; an arm that was left out stays so."""
        if len(self.plan.targets) >= MATRIX_FROM and not is_trend(self.plan):
            self._undecided &= arms

    def arms(self, group: Group) -> list[Arm]:
        arms = (Arm(case, target) for case in group for target in self.alive(case))
        return [arm for arm in arms if arm.key in self._undecided]

    def groups(self, cases: Sequence[Case]) -> Sequence[Group]:
        """Group the cases that are compared with each other.

        A worker that is used for a single replicate can hold only one case, so each case is then a group.
        """
        if self.plan.isolation != "fork":
            return [(case,) for case in cases]
        return group_linked(cases, self.plan.pairs)

    @property
    def start_s(self) -> float:
        """The seconds that the workers of a round take to start, if each round has new ones."""
        return 0.0 if self._keep_workers else self._workers.start_s

    def visits_per_round(self, groups: Sequence[Group]) -> int:
        rounds = min((self.progress.rounds[case.label] for group in groups for case in group), default=0)
        return pacing.visits_per_round(
            self.start_s,
            self.budget.estimate_s(groups),
            self.budget.left_s,
            rounds,
            self.rounds.looks[-1],
            self.budget.estimate_s(filter(self.is_piloted, groups)),
        )

    def waiting(self, group: Group, visits: int = 1) -> Waiting:
        rounds = self.rounds_of(group)
        postponed = any(case.label in self.postponed for case in group)
        behind_s = (visits - 1) * self.budget.estimate_s([group]) if self.is_piloted(group) else 0.0
        return Waiting(self.round_s(group, visits), rounds, postponed, behind_s)

    def is_piloted(self, group: Group) -> bool:
        return any(case.label in self.piloted for case in group)

    def round_s(self, group: Group, visits: int) -> float:
        """Return the seconds of a round that these cases take."""
        rounds = self.rounds_of(group)
        once = self.count_once(group, rounds + 1, visits) * self.budget.estimate_once_s(group)
        return visits * self.budget.estimate_s([group]) + once

    def count_once(self, group: Group, nth: int, visits: int) -> int:
        """Return how often their nth round visits these cases for their first calls alone.

        That is the planned number, less whole visits. If only times end the rounds, only the first rounds do this: a
        case that needs more rounds gets enough first calls with them.
        """
        if nth > FEWEST_ROUNDS and not self.plan.decides and not self.cold.intersection(case.label for case in group):
            return 0
        planned = (effort.once for arm in self.arms(group) if (effort := self.progress.efforts.get(arm.key)))
        return max(max(planned, default=0) - (visits - 1), 0)

    def choose(self, cases: Sequence[Case], number: int) -> tuple[list[Group], int, list[str]]:
        """Return the groups that the next round visits, how often, and the cases that are left for later.

        These are all groups, or those that can reach a verdict within the budget. More of them can with single visits.
        """
        groups = self.groups([case for case in cases if case.label not in self.unreached])
        overtime_s = 0.0 if number == self.rounds.first_round else self.budget.overtime_s
        for visits in dict.fromkeys((self.visits_per_round(groups), 1)):
            waiting = [self.waiting(group, visits) for group in groups]
            enough = pacing.choose_waiting(waiting, self.budget.left_s, overtime_s, self.start_s)
            if len(enough) == len(groups):
                break
        chosen = enough or pacing.fill(waiting, self.budget.left_s - self.start_s)
        left_out = [index for index, each in enumerate(waiting) if each.is_short and index not in chosen]
        later = [*self.unreached, *(case.label for index in left_out for case in groups[index])]
        if chosen and not any(each.is_short for each in waiting):
            # Chance decides which of them the last round leaves out.
            return list(groups), visits, later
        return [groups[index] for index in sorted(chosen)], visits, later
