"""What a run is going to do, in one line: cases, versions, rounds, minutes and memory."""

from orchestrator.machine.host import moment
from orchestrator.model import Plan
from orchestrator.plan.pairs import TREND_FROM
from orchestrator.terminal.durations import format_minutes

# Building, warming up and calls of a replicate; measured on two cores with the quick suite. A separate process or
# container imports TensorFlow first.
REPLICATE_S, ISOLATED_S = 0.8, 3.0
# A worker that has imported TensorFlow, and what its replicate adds: 0.22 to 0.36 and 0.1 to 0.2 were seen.
RESIDENT_GB = 0.5


def outline(plan: Plan) -> str:
    rounds = f"up to {plan.looks[-1]} rounds" if len(plan.looks) > 1 else f"{plan.looks[0]} rounds"
    what = f"{len(plan.cases)} cases x {len(plan.versions)} versions"
    if plan.claims:
        what = f"{len(plan.claims)} claims, {len(plan.arms())} arms in {len(plan.versions)} versions"
    return f"plan: {what}, {rounds}, {_minutes(plan)} min once the environments are there{_memory(plan)}"


def _minutes(plan: Plan) -> str:
    """Say how long the run takes at most or, without a budget, about how long.

    A replicate takes milliseconds or half a minute: only the pilot tells.
    """
    if plan.budget_s:
        return f"at most {format_minutes(plan.budget_s)}"
    each = REPLICATE_S if plan.isolation == "fork" else ISOLATED_S
    took = (len(plan.arms()) * (looks + 1) * each for looks in (plan.looks[0], plan.looks[-1]))
    return f"about {' to '.join(dict.fromkeys(map(format_minutes, took)))}"


def _memory(plan: Plan) -> str:
    """Estimate the memory that many versions take at the same time. Return '' for a few versions."""
    resident = len({version for _, version in plan.arms()})
    if plan.isolation != "fork" or resident < TREND_FROM:
        return ""
    needed_gb, available_mb = resident * RESIDENT_GB, moment()["available_mb"]
    estimate = f"; a worker a version and its replicate take about {needed_gb:.0f} GB of memory"
    if not isinstance(available_mb, int) or needed_gb * 1024 < available_mb:
        return estimate
    return f"{estimate}, WHERE {available_mb / 1024:.0f} GB ARE FREE: take fewer versions at a time"
