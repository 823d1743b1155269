"""The first step of a run: the options are checked against what exists and against this machine's GPUs."""

from dataclasses import replace

from orchestrator.catalog import workloads
from orchestrator.catalog.changed import provide_targets
from orchestrator.catalog.revisions import pin_revisions
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.plan.gpus import adapt_claims, describe_builds, fit
from orchestrator.plan.request import PlannedRun, RunOptions, check_request
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.view import View


def plan_run(options: RunOptions, view: View, fewest: int = 2) -> PlannedRun:
    """Plan a run on this machine; claims that allow it are about releases that hold code for its GPUs."""
    options, notes = adapt_claims(options)
    planned = plan_as_given(options, view, fewest)
    return replace(planned, fitting=replace(planned.fitting, notes=(*notes, *planned.fitting.notes)))


def plan_as_given(options: RunOptions, view: View, fewest: int = 2) -> PlannedRun:
    """Lock the targets that are in no table, check the options, and check each target against the GPUs."""
    return fit(check_request(_provide(options, view), fewest))


def plan_elsewhere(options: RunOptions, view: View) -> PlannedRun:
    """Plan a run for other machines, whose GPUs are not those of this one."""
    return describe_builds(check_request(_provide(options, view)))


def _provide(options: RunOptions, view: View) -> RunOptions:
    """Lock the targets, also those of claims; if one of these cannot be locked, only its claims are left out."""
    own = options.own_workloads if not options.program else None
    if own and (helpers := [path.name for path in workloads.find_helpers(own)]):
        view.say(f"note: not used as workloads, because they have no build(tf, params): {name_some(helpers)}")
    device = options.environments.device
    named = pin_revisions(options.versions, options.own_workloads)
    targets, found = provide_targets(named, view, device), []
    for claim in options.claims:
        try:
            provide_targets(claim.definitions, view, device)
        except UsageError as error:
            view.say(f"warning: the claim {claim.name} is left out: {error}")
        else:
            found.append(claim)
    if options.claims and not found:
        raise NothingSelected("the targets of these claims cannot be locked; see above")
    return replace(options, versions=targets, claims=tuple(found))
