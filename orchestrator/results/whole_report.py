"""Corrects the verdicts of a run for all comparisons of its report, once all of them are judged."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from orchestrator.metrics import METRICS
from orchestrator.model import CaseSet, Comparison, Evaluation, MeanRatio, Metric, Plan, Target, TargetPair
from orchestrator.plan.pairs import find_baselines
from orchestrator.stats.comparisons import Samples, average_cases
from orchestrator.stats.looks import LookSchedule
from orchestrator.stats.report_error import find_limit, mark_row_only


def correct_for_report(evaluation: Evaluation) -> Evaluation:
    """Mark the comparisons whose difference is significant in their row, but not in the report as a whole."""
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


# The mean of a single case is its ratio.
FEWEST_CASES = 2
# This function returns the schedule of looks for the case with a given label.
FindLooks = Callable[[str], LookSchedule]


def find_means(
    plan: Plan, comparisons: Iterable[Comparison], samples: Samples, find_looks: FindLooks
) -> Iterator[MeanRatio]:
    """Yield the mean of each metric and version, over the cases that have an interval in all versions.

    A version that has no interval in any case is left out, because it has nothing to compare.
    """
    families: dict[Metric, dict[Target, dict[str, TargetPair]]] = defaultdict(lambda: defaultdict(dict))
    baselines = find_baselines(plan)
    for comparison in comparisons:
        pair = comparison.pair
        if not isinstance(pair, TargetPair) or comparison.ci_low is None:
            continue
        if pair.baseline == baselines.get(pair.candidate):
            families[pair.metric][pair.candidate].setdefault(pair.case.label, pair)
    for metric, targets in families.items():
        common = [case.label for case in plan.cases if all(case.label in pairs for pairs in targets.values())]
        if METRICS[metric].of_targets or len(common) < FEWEST_CASES:
            continue
        for pairs in targets.values():
            schedules = {find_looks(label) for label in common}
            if mean := average_cases(samples, [pairs[label] for label in common], schedules, plan.alpha):
                yield mean


def find_set_means(plan: Plan, samples: Samples, find_looks: FindLooks) -> dict[CaseSet, MeanRatio]:
    """Return the mean of each set of cases that a claim is about."""
    sets = (case_set for claim in plan.claims for case_set in claim.sets)
    means = {
        case_set: average_cases(
            samples, case_set.pairs, {find_looks(pair.arms[0].case) for pair in case_set.pairs}, plan.alpha
        )
        for case_set in sets
    }
    return {case_set: mean for case_set, mean in means.items() if mean}
