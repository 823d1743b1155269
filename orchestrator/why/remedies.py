"""Targets that may bring back what was lost: the new one with a single cause undone, or with a claim's remedy."""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.catalog import targets
from orchestrator.catalog.architectures import read_number_pair
from orchestrator.catalog.claims import find_claims_about
from orchestrator.catalog.targets import Changed
from orchestrator.catalog.workloads import all_workloads
from orchestrator.errors import UsageError
from orchestrator.model import Case, Claim, Expectation, TargetPair
from orchestrator.why.causes.variables import set_variable


def find_claimed_remedies(case: Case, new: Changed) -> Iterator[tuple[str, Changed]]:
    """Yield the claims about a case in which variables make a release faster, each with the new target changed so."""
    workloads = all_workloads()
    if case.workload not in workloads or not new.version:
        return
    for claim in find_claims_about(case.workload, workloads):
        for expected in claim.expectations:
            if variables := _find_variables(claim, expected, case, new.version):
                changed = new
                for name, value in variables:
                    changed = set_variable(name, value)(changed)
                if changed.variables != new.variables:
                    yield claim.name, replace(changed, name="")


def _find_variables(claim: Claim, expected: Expectation, case: Case, number: str) -> tuple[tuple[str, str], ...]:
    """Return the variables with which a claim expects a case to be faster, in this release or in an older one."""
    pair = expected.pair
    if not isinstance(pair, TargetPair) or pair.case != case or expected.effect not in ("slower", "faster"):
        return ()
    faster = pair.baseline if expected.effect == "slower" else pair.candidate
    for text in claim.definitions:
        try:
            changed = targets.parse_target(text)
        except UsageError:
            continue
        is_it = changed.build_name(changed.version) == faster.name
        if is_it and changed.variables and read_number_pair(changed.version) <= read_number_pair(number):
            return changed.variables
    return ()
