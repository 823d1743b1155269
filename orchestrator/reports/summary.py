"""A summary with one sentence per version."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from orchestrator.model import ArmKey, Comparison, Evaluation, Target, VerdictName
from orchestrator.plan.pairs import find_baselines
from orchestrator.reports.case_names import short_names
from orchestrator.reports.columns import MARKS, ratio
from orchestrator.reports.reasons import UNCERTAIN, count_uncertain
from orchestrator.terminal.counts import format_count


def sentences(evaluation: Evaluation) -> tuple[str, ...]:
    """Return one sentence for each version and what it is compared with."""
    names = short_names(arm.case for arm in evaluation.arms)
    # A claim compares the targets that it names, and no others.
    planned = find_baselines(evaluation.plan).items() if not evaluation.plan.claims else ()
    by_targets: dict[tuple[Target, Target], list[Comparison]] = {each: [] for each in planned}
    for comparison in evaluation.comparisons:
        old, new = (arm.target for arm in comparison.pair.arms)
        if comparison.pair.across:
            by_targets.setdefault((new, old), []).append(comparison)
    return tuple(
        _sentence(candidate, baseline, own, names)
        for (candidate, baseline), own in by_targets.items()
        if not candidate.control
    )


def by_candidate(comparisons: Iterable[Comparison]) -> dict[ArmKey, Comparison]:
    """Return the comparison across versions of each arm that has one; if claims ask for several, the first."""
    by_arm: dict[ArmKey, Comparison] = {}
    for comparison in comparisons:
        if comparison.pair.across:
            by_arm.setdefault(comparison.pair.arms[1], comparison)
    return by_arm


def _sentence(candidate: Target, baseline: Target, own: Sequence[Comparison], names: Mapping[str, str]) -> str:
    timed = [comparison for comparison in own if comparison.seen_ratio is not None]
    if not timed:
        return f"{candidate} against {baseline}: nothing could be compared."
    of = format_count(len(own), "case")
    by_verdict = {
        verdict: [comparison for comparison in timed if comparison.report_verdict == verdict]
        for verdict in get_args(VerdictName)
    }
    same, missing = len(by_verdict["same"]), len(own) - len(timed)
    slight = _describe_slight(by_verdict["same"])
    uncertain = count_uncertain(timed)
    few = [comparison for comparison in by_verdict["inconclusive"] if comparison.missing]
    rest = [
        (same, f"same{slight}"),
        (uncertain, UNCERTAIN),
        (len(by_verdict["inconclusive"]) - uncertain - len(few), "inconclusive"),
        (len(few), f"with too few rounds for a verdict{_describe_few(few, names)}"),
        (missing, "without a time"),
    ]
    counts = [f"{count} {what}" for count, what in rest if count]
    differing = [(verdict, by_verdict[verdict]) for verdict in ("slower", "faster") if by_verdict[verdict]]
    if not differing and not same:
        return f"{candidate} against {baseline}: nothing decided in {of}: {', '.join(counts)}."
    if not differing:
        lead = f"{candidate} is the same as {baseline} in {same} of {of}{slight}"
        return "; ".join([lead, *_join_parts(counts[1:])]) + "."
    (verdict, most), *others = differing
    lead = f"{candidate} is {verdict} than {baseline} in {len(most)} of {of} ({_worst(most, names)})"
    also = "".join(
        f" and {verdict} in {len(comparisons)} ({_worst(comparisons, names)})" for verdict, comparisons in others
    )
    return "; ".join([lead + also, *_join_parts(counts)]) + "."


def _describe_few(few: Sequence[Comparison], names: Mapping[str, str]) -> str:
    """Return what the comparison that differs most shows so far, as in ` (in fit: 10.3x so far (...))`, or ''."""
    if not few:
        return ""
    worst = max(few, key=lambda comparison: abs(math.log(comparison.seen_ratio or 1.0)))
    label = worst.pair.arms[1].case
    return f" ({'most ' if len(few) > 1 else ''}in {names.get(label, label)}: {worst.so_far})"


def _describe_slight(same: Sequence[Comparison]) -> str:
    """Return how many comparisons inside the margin certainly differ, as in ` (2 slightly slower)`, or ''."""
    counts = Counter(each.shown_verdict for each in same if each.size == "slight" and not each.row_only)
    listing = ", ".join(f"{counts[verdict]} {verdict}" for verdict in MARKS if counts[verdict])
    return f" ({listing})" if listing else ""


def _join_parts(counts: Sequence[str]) -> list[str]:
    return [", ".join(counts)] if counts else []


def _worst(comparisons: Sequence[Comparison], names: Mapping[str, str]) -> str:
    """Return the name and ratio of the comparison that differs most."""
    worst = max(comparisons, key=lambda comparison: abs(math.log(comparison.ratio or 1.0)))
    label = worst.pair.arms[1].case
    return f"{'most in ' if len(comparisons) > 1 else ''}{names.get(label, label)}, {ratio(worst.ratio or 1.0)}"
