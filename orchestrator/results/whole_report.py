"""Corrects the verdicts of a run for all comparisons of its report, once all of them are judged."""

from collections.abc import Iterable
from dataclasses import replace

from orchestrator.model import Comparison, Contrast
from orchestrator.stats.report_error import find_limit, mark_row_only


def correct_for_report(comparison: Comparison) -> Comparison:
    """Mark the contrasts that differ in their rows and not in the report as a whole."""
    # The same pair may be a contrast and a step between neighbours, or have several margins.
    ps = {(each.pair.arms, each.pair.metric): each.p for each in comparison.of_all if each.p is not None}
    limit = find_limit(ps.values())

    def mark(contrasts: Iterable[Contrast]) -> tuple[Contrast, ...]:
        return tuple(mark_row_only(each, limit, len(ps)) for each in contrasts)

    return replace(
        comparison,
        contrasts=mark(comparison.contrasts),
        neighbours=mark(comparison.neighbours),
        references=mark(comparison.references),
        metrics={metric: mark(of_metric) for metric, of_metric in comparison.metrics.items()},
        judged_together=len(ps),
    )
