"""Divides a run into units: cases that are compared with each other, or that one claim needs. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from orchestrator.model import Case, Claim, list_arms
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.plan.shards import group_cases

# A host sends its results so far every 5 s, or less often if all hosts together would send more than 10 times a second,
# since a single process writes them.
SENT_EVERY_S, SENT_A_SECOND = 5.0, 10.0


@dataclass(frozen=True)
class Unit:
    """The cases that one host measures as a whole, with all their arms and rounds."""

    number: int
    cases: tuple[Case, ...]
    claims: tuple[Claim, ...] = ()

    @property
    def title(self) -> str:
        more = len(self.cases) - 1
        return self.cases[0].label + (f" and {more} more" if more else "")


def divide_run(planned: PlannedRun) -> tuple[Unit, ...]:
    """Return the units of a run, in its order."""
    options, cases = planned.options, planned.selection.cases
    if options.claims:
        claims = [claim for claim in options.claims if options.environments.device in claim.devices]
        groups = _group_claims(claims, cases)
    else:
        groups = ((tuple(group), ()) for group in group_cases(cases, planned.workloads))
    return tuple(Unit(number, own, of_claims) for number, (own, of_claims) in enumerate(groups, 1))


def _group_claims(
    claims: Sequence[Claim], cases: Sequence[Case]
) -> Iterator[tuple[tuple[Case, ...], tuple[Claim, ...]]]:
    """Yield groups of claims that share cases, with these cases, so that each case is measured once."""
    groups: list[tuple[set[Case], list[Claim]]] = []
    for claim in claims:
        own, together = set(claim.cases), [claim]
        apart = []
        for others, of_others in groups:
            if own & others:
                own, together = own | others, [*of_others, *together]
            else:
                apart.append((others, of_others))
        groups = [*apart, (own, together)]
    for own, together in groups:
        yield tuple(case for case in cases if case in own), tuple(together)


def find_sending_s(hosts: int) -> float:
    """Return the time between two messages of a host that hold its results so far."""
    return max(SENT_EVERY_S, hosts / SENT_A_SECOND)


def request(unit: Unit, planned: PlannedRun, engine: str, at_once: float) -> RunOptions:
    """Return the options with which a host measures a unit: those of the run, for the cases of the unit.

    A budget is that of the whole run, which measures `at_once` units at the same time: each unit gets its share.
    """
    options = planned.options
    # If the user has set no budget, the host takes the usual one of these cases.
    budget_s = planned.selection.budget_s if options.budget_s or options.claims else None
    if budget_s is not None:
        arms = list_arms(unit.cases, planned.selection.targets, unit.claims, options.environments.device)
        budget_s = min(budget_s, budget_s * at_once * len(arms) / len(planned.arms()))
    return replace(
        options,
        suite=None if unit.claims else options.suite,
        selected=() if unit.claims else tuple(case.label for case in unit.cases),
        shard=None,
        prolong=False,
        claims=unit.claims,
        engine=engine,
        out=None,
        budget_s=budget_s,
        seed=planned.seed,
        own_workloads=None,
    )
