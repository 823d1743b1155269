"""Bencher Metric Format: one benchmark per arm, with its time and, for candidates, its ratio to the baseline."""

import json

from orchestrator.exports.common import quartiles, steady_ns
from orchestrator.exports.escape import key
from orchestrator.reports.summary import by_candidate
from orchestrator.results.run import Run

LONGEST_NAME = 1024

Metric = dict[str, float]


def render(run: Run) -> str:
    times, contrasts = steady_ns(run), by_candidate(run.contrasts)
    benchmarks: dict[str, dict[str, Metric]] = {}
    for arm in run.arms:
        if arm.median_ms is None:
            continue
        name = arm.key
        measures = {"latency": _latency(arm.median_ms, times.get(name, []))}
        contrast = contrasts.get(name)
        if contrast and contrast.ratio is not None:
            measures["ratio"] = _metric(contrast.ratio, contrast.ci_low, contrast.ci_high)
        benchmarks[key(f"{name.case} {name.version}", LONGEST_NAME)] = measures
    return json.dumps(benchmarks, indent=2, allow_nan=False)


def _latency(median_ms: float, replicates_ns: list[float]) -> Metric:
    """Return the time in nanoseconds, like Bencher's own latency, with quartiles of the replicates as bounds."""
    return _metric(round(median_ms * 1e6, 3), *(quartiles(replicates_ns) if replicates_ns else (None, None)))


def _metric(value: float, low: float | None, high: float | None) -> Metric:
    bounds = {} if low is None or high is None else {"lower_value": low, "upper_value": high}
    return {"value": value, **bounds}
