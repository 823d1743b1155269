"""Checks whether GPU images train on this machine's GPU: one step of a convolution, plain and compiled by XLA."""

from collections.abc import Sequence

from orchestrator.images.verify import Check
from orchestrator.measure.trial import TriedArm, try_workloads
from orchestrator.options import EngineOptions
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.progress import View

WORKLOAD = "conv_step"
# The driver may first compile what the wheel holds no code for.
TIMEOUT_S = 7200.0


def check_steps(versions: Sequence[str], environments: EngineOptions, view: View) -> dict[str, tuple[Check, ...]]:
    """Return the checks of each version, by its number; raise EngineUnavailable if none of them sees the GPU."""
    options = RunOptions(
        versions=tuple(versions),
        engine="docker",
        environments=environments,
        selected=(WORKLOAD,),
        timeout_s=TIMEOUT_S,
    )
    checks: dict[str, tuple[Check, ...]] = {}
    for arm in try_workloads(plan_run(options, view.say, fewest=1), view):
        checks[str(arm.target)] = (*checks.get(str(arm.target), ()), check_arm(arm))
    return checks


def check_arm(arm: TriedArm) -> Check:
    subject = "step on the GPU" + (", by XLA" if dict(arm.case.params)["compiler"] == "xla" else "")
    if arm.first_ns is not None:
        found = f"trained; the first call took {format_time(arm.first_ns / 1e6)}"
    else:
        found = f"{arm.outcome}: {arm.reason}"
    return Check(subject, arm.outcome != "died", "a convolution that trains", found)
