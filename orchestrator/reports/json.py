"""The comparison as one JSON object, `tfcompare.comparison/1`, which is part of the interface."""

from typing import Any

from orchestrator.model import Comparison, Evaluation, Pair
from orchestrator.reports.goes_with import find_companions
from orchestrator.reports.target_differences import differences_as_objects
from orchestrator.results.tables import describe_arm
from orchestrator.terminal import strict_json
from orchestrator.terminal.strict_json import OF_DIFFERENCE, OF_RATIO, pick

SCHEMA = "tfcompare.comparison/1"
MEAN = f"metric baseline candidate {OF_RATIO} cases rounds"
OUTPUT = (
    "workload=case.workload params=case.params baseline candidate verdict call difference ulps floor changed compared "
    "complete reason?"
)
GOES_WITH = "rule slower faster cases text"
COMPARISON = (
    f"{OF_RATIO} {OF_DIFFERENCE} rounds verdict reason? mde seed_percent second_ratio sign_flip_p exploratory row_only "
    "size cpu_ratio cpu_low cpu_high spread cpu_spread cpu_verdict missing_rounds=missing pilot_ratio"
)


def as_json(evaluation: Evaluation) -> str:
    return strict_json.dump(comparison_as_object(evaluation), indent=2)


def comparison_as_object(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run_object(evaluation),
        "arms": [describe_arm(arm) for arm in evaluation.arms],
        "comparisons": [_comparison(each) for each in evaluation.comparisons],
        "warnings": [*evaluation.broken, *evaluation.warnings],
        "differences": differences_as_objects(evaluation),
        "goes_with": [pick(each, GOES_WITH) for each in find_companions(evaluation)],
        "metrics": [_comparison(each) for each in evaluation.of_metrics],
        "outputs": [pick(each, OUTPUT) for each in evaluation.outputs],
        "means": [pick(each, MEAN) for each in evaluation.means],
    }


def run_object(evaluation: Evaluation) -> dict[str, Any]:
    names = "id=plan.run engine=plan.engine device=plan.device created=plan.created suite=plan.suite margin=plan.margin"
    return pick(evaluation, f"{names} judge=plan.judge ended_by_budget? host=manifest.host")


def pair_object(pair: Pair) -> dict[str, Any]:
    return pick(pair.flat, "workload params kind target baseline candidate metric")


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {**pair_object(comparison.pair), **pick(comparison, COMPARISON)}
