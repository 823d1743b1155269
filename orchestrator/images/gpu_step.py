"""Checks whether GPU images train on this machine's GPU: one step of a convolution, plain and compiled by XLA."""

from collections.abc import Sequence
from dataclasses import replace

from orchestrator import catalog
from orchestrator.catalog.gpu_support import match_gpu
from orchestrator.images.verify import Check
from orchestrator.machine.gpu import find_gpus
from orchestrator.measure.trial import TriedArm, try_workloads
from orchestrator.options import DOCKER, EngineOptions
from orchestrator.plan.gpus import choose_gpus
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.view import View

WORKLOAD = "conv_step"
SUBJECT, WANTED = "step on the GPU", "a convolution that trains"
# The driver may first have to compile kernels that the wheel does not contain for this GPU.
TIMEOUT_S = 7200.0


def check_steps(versions: Sequence[str], environments: EngineOptions, view: View) -> dict[str, tuple[Check, ...]]:
    """Return the checks of each version, by its number; raise EngineUnavailable if none of them sees the GPU.

    Versions that are known to fail on the GPU are not tried.
    """
    chosen = choose_gpus(environments.gpus, find_gpus())
    checks: dict[str, tuple[Check, ...]] = {}
    for version in catalog.resolve_versions(list(dict.fromkeys(versions)), fewest=1):
        refusals = [match for gpu in chosen if (match := match_gpu(version, gpu, ())).fit == "unsupported"]
        checks[version.number] = tuple(Check(SUBJECT, True, WANTED, f"not tried: {match.reason}") for match in refusals)
    options = RunOptions(
        versions=tuple(number for number, refused in checks.items() if not refused),
        engine=DOCKER,
        environments=replace(environments, exclusive=True),
        selected=(WORKLOAD,),
        timeout_s=TIMEOUT_S,
    )
    for arm in try_workloads(plan_run(options, view, fewest=1), view) if options.versions else ():
        checks[str(arm.target)] = (*checks[str(arm.target)], check_arm(arm))
    return checks


def check_arm(arm: TriedArm) -> Check:
    subject = SUBJECT + (", by XLA" if dict(arm.case.params)["compiler"] == "xla" else "")
    if arm.first_ns is not None:
        found = f"trained; the first call took {format_time(arm.first_ns / 1e6)}"
    else:
        found = f"{arm.outcome}: {arm.reason}"
    return Check(subject, arm.outcome != "died", WANTED, found)
