"""The range of rounds that are measured in one go."""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.model import ArmKey, Case, Evaluation, Plan

# Says why the rounds that were judged at a look are enough, or returns ''.
Enough = Callable[[Evaluation], str]


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
    # If set, a program is still measured when the remaining rounds cannot decide anything.
    keep_going: bool = False
    # The arms that a run which continues has no verdict of; None if nothing was judged yet.
    undecided: frozenset[ArmKey] | None = None
    # If set, a look may end the rounds before all comparisons are decided.
    enough: Enough | None = None


def first_rounds(plan: Plan, *, keep_going: bool = False, enough: Enough | None = None) -> RoundRange:
    return RoundRange(
        cases=plan.cases,
        looks=plan.looks,
        budget_s=plan.budget_s,
        seed=plan.seed,
        keep_going=keep_going,
        enough=enough,
    )
