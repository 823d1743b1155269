"""The input of `--fail-on`: the comparisons of a run, or of two runs, with those that could not be made."""

from collections import Counter

from orchestrator.metrics import METRICS, OUTPUT, with_output
from orchestrator.metrics.gates import GatedComparisons
from orchestrator.model import Evaluation, Plan
from orchestrator.plan.pairs import metric_pairs
from orchestrator.results.compare_runs import Changes
from orchestrator.results.outputs import find_output_pairs


def name_compared(plan: Plan) -> tuple[str, ...]:
    """Return the names of what a run compares in addition to times, including what its claims name."""
    metrics = dict.fromkeys((*plan.metrics, *(pair.metric for pair in plan.pairs)))
    return with_output(metrics, outputs=plan.outputs)


def gate_run(evaluation: Evaluation) -> GatedComparisons:
    plan, arms = evaluation.plan, evaluation.arms
    missing: dict[str | None, int] = {}
    for metric in plan.metrics:
        expected = metric_pairs(plan, METRICS[metric], arms)
        missing[metric] = len(expected) - len(evaluation.metrics.get(metric, ()))
    if plan.outputs:
        missing[OUTPUT] = len(find_output_pairs(plan)) - len(evaluation.outputs)
    unmeasured = next((arm for arm in arms if arm.outcome != "measured"), None)
    return GatedComparisons(
        planned=evaluation.comparisons,
        others=evaluation.of_metrics,
        outputs=evaluation.outputs,
        missing=missing,
        why_missing=f"{unmeasured.target}: {unmeasured.reason}" if unmeasured else "",
        died=len(evaluation.died),
        judged_together=evaluation.judged_together,
    )


def gate_changes(changes: Changes) -> GatedComparisons:
    """Return what gates judge about two runs; a comparison that only one of them has could not be made."""
    planned = {*changes.earlier.plan.pairs, *changes.later.plan.pairs}
    missing: Counter[str | None] = Counter(pair.metric for pair in changes.missing)
    missing[None] = sum(pair in planned for pair in changes.missing)
    return GatedComparisons(
        planned=[change for change in changes.changes if change.pair in planned],
        others=[change for change in changes.changes if change.pair not in planned],
        missing=missing,
        why_missing="; ".join(changes.left_out),
        died=len(changes.later.evaluation.died),
        judged_together=changes.judged_together,
    )
