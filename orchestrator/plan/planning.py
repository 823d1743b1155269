"""The first step of a run: the options are checked against what exists and against this machine's GPUs."""

from collections.abc import Callable
from dataclasses import replace

from orchestrator.catalog.changed import provide_targets
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import Claim
from orchestrator.plan.gpus import describe_builds, fit
from orchestrator.plan.request import PlannedRun, RunOptions, check_request


def plan_run(options: RunOptions, say: Callable[[str], None], fewest: int = 2) -> PlannedRun:
    """Lock targets that no table has, check the options, and judge each target by the GPUs."""
    return fit(check_request(_provide(options, say), fewest))


def plan_elsewhere(options: RunOptions, say: Callable[[str], None]) -> PlannedRun:
    """Plan a run for other machines, whose GPUs are not those of this one."""
    return describe_builds(check_request(_provide(options, say)))


def _provide(options: RunOptions, say: Callable[[str], None]) -> RunOptions:
    device = options.environments.device
    targets, claims = provide_targets(options.versions, say, device), _provide_claims(options.claims, say, device)
    return replace(options, versions=targets, claims=claims)


def _provide_claims(claims: tuple[Claim, ...], say: Callable[[str], None], device: FlavourName) -> tuple[Claim, ...]:
    """Lock the targets of claims; what cannot be locked costs only the claims that name it."""
    found = []
    for claim in claims:
        try:
            provide_targets(claim.definitions, say, device)
        except UsageError as error:
            say(f"warning: the claim {claim.name} is left out: {error}")
        else:
            found.append(claim)
    if claims and not found:
        raise NothingSelected("the targets of these claims cannot be locked; see above")
    return tuple(found)
