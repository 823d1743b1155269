"""What CPU times decide where a busy or noisy machine leaves many wall times open."""

import math
from collections.abc import Iterator, Mapping
from statistics import median

from orchestrator.model import Contrast, Evaluation
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
    decided = [contrast for contrast in open_ if contrast.is_decided_by_cpu]
    of = f"{len(decided) or 'none'} of {format_count(len(open_), 'open comparison')}"
    named = name_some([_describe(contrast, names) for contrast in decided])
    yield f"CPU time decides {of}{f': {named}' if named else ''}."
    wall, cpu = (
        f"{math.expm1(median(spreads)):.1%}"
        for spreads in (
            [contrast.spread or 0.0 for contrast in open_],
            [contrast.cpu_spread or 0.0 for contrast in open_],
        )
    )
    advice = "--columns +cpu shows them, and a run with --judge cpu is judged by them" if decided else "--columns +cpu"
    yield f"From round to round, ratios of CPU times vary by {cpu} and those of wall times by {wall}: {advice}."


def _describe(contrast: Contrast, names: Mapping[str, str]) -> str:
    baseline, candidate = contrast.pair.arms
    against = f" against {names[baseline.case]}" if contrast.pair.kind == "case" else ""
    figures = format_ratio(CpuRatio(contrast.cpu_ratio or 1.0, contrast.cpu_low, contrast.cpu_high))
    return f"{names[candidate.case]}{against} in {candidate.version} {contrast.cpu_verdict} {figures}"
