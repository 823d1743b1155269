"""Corrects the verdicts of a run for all comparisons of its report, once all of them are judged."""

from collections.abc import Iterable
from dataclasses import replace

from orchestrator.model import Comparison, Evaluation
from orchestrator.stats.report_error import find_limit, mark_row_only


def correct_for_report(evaluation: Evaluation) -> Evaluation:
    """Mark the comparisons that differ in their rows and not in the report as a whole."""
    # The same pair may be a comparison and a step between neighbours, or have several margins.
    ps = {(each.pair.arms, each.pair.metric): each.p for each in evaluation.of_all if each.p is not None}
    limit = find_limit(ps.values())

    def mark(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
        return tuple(mark_row_only(each, limit, len(ps)) for each in comparisons)

    return replace(
        evaluation,
        comparisons=mark(evaluation.comparisons),
        neighbours=mark(evaluation.neighbours),
        references=mark(evaluation.references),
        metrics={metric: mark(of_metric) for metric, of_metric in evaluation.metrics.items()},
        judged_together=len(ps),
    )
