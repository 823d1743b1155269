"""Sentences about what CPU times decide if a busy or noisy machine leaves many wall times open."""

import math
from collections.abc import Iterator, Mapping
from statistics import median

from orchestrator.model import Comparison, Evaluation
from orchestrator.reports.case_names import short_names
from orchestrator.reports.columns import CpuRatio, format_ratio
from orchestrator.results.warnings import find_open_times
from orchestrator.terminal.counts import format_count, name_some


def describe_cpu_times(evaluation: Evaluation) -> Iterator[str]:
    """Yield which open comparisons CPU times decide, and how much less these vary."""
    open_ = find_open_times(evaluation)
    if not open_:
        return
    names = short_names(arm.case for arm in evaluation.arms)
    decided = [comparison for comparison in open_ if comparison.is_decided_by_cpu]
    of = f"{len(decided) or 'none'} of {format_count(len(open_), 'open comparison')}"
    named = name_some([_describe(comparison, names) for comparison in decided])
    yield f"CPU time decides {of}{f': {named}' if named else ''}."
    wall, cpu = (
        f"{math.expm1(median(spreads)):.1%}"
        for spreads in (
            [comparison.spread or 0.0 for comparison in open_],
            [comparison.cpu_spread or 0.0 for comparison in open_],
        )
    )
    advice = (
        "--columns +cpu-ratio shows them, and a run with --judge cpu is judged by them"
        if decided
        else "--columns +cpu-ratio shows them"
    )
    yield f"From round to round, ratios of CPU times vary by {cpu} and those of wall times by {wall}: {advice}."


def _describe(comparison: Comparison, names: Mapping[str, str]) -> str:
    baseline, candidate = comparison.pair.arms
    against = f" against {names[baseline.case]}" if comparison.pair.kind == "case" else ""
    figures = format_ratio(CpuRatio(comparison.cpu_ratio or 1.0, comparison.cpu_low, comparison.cpu_high))
    return f"{names[candidate.case]}{against} in {candidate.target} {comparison.cpu_verdict} {figures}"
