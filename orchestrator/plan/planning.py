"""The first step of a run: the options are checked against what exists and against this machine's GPUs."""

from collections.abc import Callable
from dataclasses import replace

from orchestrator.catalog.lock_on_demand import provide
from orchestrator.plan.gpus import fit
from orchestrator.plan.request import PlannedRun, RunOptions, check_request


def plan_run(options: RunOptions, say: Callable[[str], None], fewest: int = 2) -> PlannedRun:
    """Lock versions that no table has, check the options, and judge each version by the GPUs."""
    return fit(check_request(replace(options, versions=provide(options.versions, say)), fewest))
