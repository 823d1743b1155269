"""Estimates from the history how far runs of a machine differ in a ratio beyond what their rounds explain."""

from collections.abc import Sequence
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.history.location import history_path
from orchestrator.history.model import Key, Segment
from orchestrator.history.series import all_series
from orchestrator.history.store import Store
from orchestrator.model import Pair, TargetPair
from orchestrator.results.run import Run
from orchestrator.stats.welch import BetweenRunVariance

# Fewer nights are not enough to estimate how far they differ.
FEWEST_NIGHTS = 4


def find_between_run_variances(earlier: Run, later: Run) -> dict[Pair, BetweenRunVariance]:
    """Return, by pair, how far earlier nights of these cases differed, if one machine measured them and both runs.

    The two runs themselves are left out, since the question is whether they differ.
    """
    keys = {pair: key for pair, key in _name_series(later).items() if _name_series(earlier).get(pair) == key}
    if not keys:
        return {}
    points = Store(history_path(None)).read().table
    mine = pc.equal(points.column("host"), next(iter(keys.values())).host)
    others = pc.invert(pc.is_in(points.column("run"), pa.array([earlier.plan.run, later.plan.run])))
    cases = pc.is_in(points.column("case"), pa.array(sorted({key.case for key in keys.values()})))
    series = all_series(points.filter(pc.and_(cases, pc.and_(mine, others))))
    found = {pair: estimate_between_run_variance(series[key].segments) for pair, key in keys.items() if key in series}
    return {pair: between for pair, between in found.items() if between}


def _name_series(run: Run) -> dict[Pair, Key]:
    """Return, by pair, the key of the series that this run would add a night to."""
    plan, host = run.plan, run.manifest.host.get("id")
    comparisons = (*run.comparisons, *run.evaluation.of_metrics)
    return {
        pair: Key(
            case=pair.case.label,
            target=pair.candidate,
            reference=pair.baseline,
            device=plan.device,
            engine=plan.engine,
            host=str(host),
            metric=pair.metric,
            judge=plan.judge if pair.across else "wall",
        )
        for pair in (comparison.pair for comparison in comparisons)
        if host and isinstance(pair, TargetPair) and pair.baseline == plan.targets[0]
    }


def estimate_between_run_variance(segments: Sequence[Segment]) -> BetweenRunVariance | None:
    """Return how far nights in the same surroundings differ beyond what their rounds explain; None for few nights."""
    values = [value for segment in segments for value in segment.values]
    freedom = len(values) - sum(bool(segment.values) for segment in segments)
    if freedom < FEWEST_NIGHTS - 1:
        return None
    apart = 0.0
    for segment in segments:
        mean = fmean(value.effect for value in segment.values) if segment.values else 0.0
        apart += sum((value.effect - mean) ** 2 for value in segment.values)
    return BetweenRunVariance(max(apart / freedom - fmean(value.error**2 for value in values), 0.0), freedom)
