"""Conditions that a plan must meet beyond its types, before anything is computed from it."""

import math

from orchestrator.metrics import NOT_BY_CPU
from orchestrator.model import Plan
from orchestrator.model.journal import check_looks


def check_plan(plan: Plan) -> Plan:
    """Return the plan, or raise ValueError for the first condition that it does not meet."""
    arms = {arm.key for arm in plan.arms()}
    # Labels are names in files: two cases with one name could not be distinguished.
    if len({case.label for case in plan.cases}) < len(plan.cases) or len(set(plan.targets)) < len(plan.targets):
        raise ValueError("a case or a version appears twice")
    for pair in plan.pairs:
        if lacking := [arm for arm in pair.arms if arm not in arms]:
            raise ValueError(f"{lacking[0].case} in {lacking[0].target} is compared, but is not one of the arms")
    if plan.judge == "cpu":
        if plan.device == "gpu" or plan.claims:
            raise ValueError("judge: a run on a GPU, or a run of claims, cannot be judged by CPU time")
        if both := NOT_BY_CPU & {*plan.metrics, *(pair.metric for pair in plan.pairs)}:
            raise ValueError(f"judge: a run that is judged by CPU time cannot also compare {min(both)}")
    check_looks(plan.looks)
    for name, share in (("alpha", plan.alpha), ("margin", plan.margin)):
        if not 0 < share < 1:
            raise ValueError(f"{name}: {share} is not between 0 and 1")
    seconds = [("timeout_s", plan.timeout_s), ("budget_s", plan.budget_s or 1.0)]
    margins = [("a pair's margin", pair.margin) for pair in plan.pairs if pair.margin is not None]
    margins += [(f"the margin of {metric}", margin) for metric, margin in plan.margins.items()]
    for name, amount in [*seconds, *margins]:
        if not 0 < amount < math.inf:
            raise ValueError(f"{name}: {amount} is not a positive number")
    return plan
