"""The comparison as one JSON object, `tfcompare.comparison/1`, which is part of the interface."""

from typing import Any

from orchestrator.model import Comparison, Evaluation, MeanRatio, OutputComparison, Pair
from orchestrator.reports.target_differences import as_objects
from orchestrator.results.tables import describe_arm
from orchestrator.terminal import strict_json

SCHEMA = "tfcompare.comparison/1"


def as_json(evaluation: Evaluation) -> str:
    return strict_json.dump(comparison_as_object(evaluation), indent=2)


def comparison_as_object(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run_object(evaluation),
        "arms": [describe_arm(arm) for arm in evaluation.arms],
        "comparisons": [_comparison(comparison) for comparison in evaluation.comparisons],
        "warnings": [*evaluation.broken, *evaluation.warnings],
        "differences": as_objects(evaluation),
        "metrics": [_comparison(each) for each in evaluation.of_metrics],
        "outputs": [_output(each) for each in evaluation.outputs],
        "means": [_mean(each) for each in evaluation.means],
    }


def run_object(evaluation: Evaluation) -> dict[str, Any]:
    plan = evaluation.plan
    return {
        "id": plan.run,
        "engine": plan.engine,
        "device": plan.device,
        "created": plan.created.isoformat(),
        "suite": plan.suite,
        "margin": plan.margin,
        "judge": plan.judge,
        "ended_by_budget": evaluation.ended_by_budget or None,
        "host": evaluation.manifest.host,
    }


def pair_object(pair: Pair) -> dict[str, Any]:
    flat = pair.flat
    return {
        "workload": flat.workload,
        "params": dict(flat.params),
        "kind": flat.kind,
        "target": flat.target,
        "baseline": flat.baseline,
        "candidate": flat.candidate,
        "metric": flat.metric,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        **pair_object(comparison.pair),
        "ratio": comparison.ratio,
        "ci_low": comparison.ci_low,
        "ci_high": comparison.ci_high,
        "difference": comparison.difference,
        "difference_low": comparison.difference_low,
        "difference_high": comparison.difference_high,
        "rounds": comparison.rounds,
        "verdict": comparison.verdict,
        "reason": comparison.reason or None,
        "mde": comparison.mde,
        "seed_percent": comparison.seed_percent,
        "second_ratio": comparison.second_ratio,
        "sign_flip_p": comparison.sign_flip_p,
        "exploratory": comparison.exploratory,
        "row_only": comparison.row_only,
        "size": comparison.size,
        "cpu_ratio": comparison.cpu_ratio,
        "cpu_low": comparison.cpu_low,
        "cpu_high": comparison.cpu_high,
        "spread": comparison.spread,
        "cpu_spread": comparison.cpu_spread,
        "cpu_verdict": comparison.cpu_verdict,
        "missing_rounds": comparison.missing,
        "pilot_ratio": comparison.pilot_ratio,
    }


def _mean(mean: MeanRatio) -> dict[str, Any]:
    return {
        "metric": mean.metric,
        "baseline": str(mean.baseline),
        "candidate": str(mean.candidate),
        "ratio": mean.ratio,
        "ci_low": mean.ci_low,
        "ci_high": mean.ci_high,
        "cases": mean.cases,
        "rounds": mean.rounds,
    }


def _output(output: OutputComparison) -> dict[str, Any]:
    return {
        "workload": output.case.workload,
        "params": dict(output.case.params),
        "baseline": str(output.baseline),
        "candidate": str(output.candidate),
        "verdict": output.verdict,
        "call": output.call,
        "difference": output.difference,
        "ulps": output.ulps,
        "floor": output.floor,
        "changed": output.changed,
        "compared": output.compared,
        "complete": output.complete,
        "reason": output.reason or None,
    }
