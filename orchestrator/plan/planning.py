"""The first step of a run: the options are checked against what exists and against this machine's GPUs."""

from collections.abc import Callable
from dataclasses import replace

from orchestrator.catalog.changed import provide
from orchestrator.plan.gpus import fit
from orchestrator.plan.request import PlannedRun, RunOptions, check_request


def plan_run(options: RunOptions, say: Callable[[str], None], fewest: int = 2) -> PlannedRun:
    """Lock targets that no table has, check the options, and judge each target by the GPUs."""
    targets = provide(options.versions, say, options.environments.device)
    return fit(check_request(replace(options, versions=targets), fewest))
