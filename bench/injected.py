"""Differences of a known size, put into measured runs of equal arms and judged again.

The noise is that of real workers and the rule is that of reports; only the differences are artificial. The part on
detection shows how often a run that measures as long as it needs finds a difference of times.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from orchestrator.metrics import find_margin, scale_of
from orchestrator.metrics.table import PERCENTILES
from orchestrator.model import Metric, Replicate, Target
from orchestrator.results.evaluation import RunContents, judge_gathered
from orchestrator.stats.scale import Ratios

# These sizes are in margins of the metric.
SIZES = (1, 2, 4)
# A change returns the replicate as it would be if its arm had this factor, or this amount, more.
Change = Callable[[Replicate, float], Replicate]


def _scale(field: str, replicate: Replicate, factor: float) -> Replicate:
    figure = getattr(replicate, field)
    return replicate if figure is None else _set(replicate, field, round(figure * factor))


def _shift_logs(field: str, place: int | None, replicate: Replicate, factor: float) -> Replicate:
    logs = getattr(replicate, field)
    moved = (log + math.log(factor) if place in (None, at) else log for at, log in enumerate(logs))
    return _set(replicate, field, tuple(moved))


def _add(field: str, unit: float, replicate: Replicate, amount: float) -> Replicate:
    figure = getattr(replicate, field)
    # A count is a whole number.
    return replicate if figure is None else _set(replicate, field, figure + math.ceil(amount * unit))


def _set(replicate: Replicate, field: str, value: Any) -> Replicate:
    fields: dict[str, Any] = {field: value}
    return replicate._replace(**fields)


CHANGES: Mapping[Metric, Change] = {
    "first": partial(_scale, "first_call_ns"),
    "build": partial(_scale, "build_ns"),
    "import": partial(_scale, "import_ns"),
    "memory": partial(_scale, "memory_kb"),
    "cpu": partial(_shift_logs, "cpu_bursts", None),
    "leak": partial(_add, "growth_bytes", 1.0),
    "traces": partial(_add, "traces", 1.0),
    "traces_per_call": partial(_add, "later_traces", 1000.0),
    **{metric: partial(_shift_logs, "percentiles", place) for place, metric in enumerate(PERCENTILES)},
}


def judge_injected(
    gathered: RunContents, target: Target, metrics: Sequence[Metric]
) -> Iterator[tuple[Metric, int, str]]:
    """Yield each metric, each size in margins, and each verdict on this target with a change of that size."""
    for metric in metrics:
        margin = find_margin(gathered.plan, metric)
        for size in SIZES:
            more = 1 + size * margin if isinstance(scale_of(metric), Ratios) else size * margin
            alone = replace(gathered, plan=replace(gathered.plan, metrics=(metric,), outputs=False))
            for comparison in judge_gathered(_inject(alone, target, CHANGES[metric], more)).of_metrics:
                if comparison.pair.metric == metric and comparison.pair.arms[1].target == target and comparison.ends:
                    yield metric, size, comparison.verdict


def _inject(gathered: RunContents, target: Target, change: Change, more: float) -> RunContents:
    def changed(replicates: Sequence[Replicate]) -> tuple[Replicate, ...]:
        return tuple(change(each, more) if each.target == target else each for each in replicates)

    return replace(
        gathered,
        replicates=changed(gathered.replicates),
        pilots=changed(gathered.pilots),
        openings=changed(gathered.openings),
    )
