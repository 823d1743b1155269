"""Bencher Metric Format: one benchmark per arm, with its figures and, for candidates, their ratios to the baseline."""

from collections.abc import Mapping

from orchestrator.exports.common import metrics_of_arms, quartiles, times_ns
from orchestrator.exports.escape import key
from orchestrator.metrics.spec import Unit
from orchestrator.model import ArmKey
from orchestrator.reports.summary import by_candidate
from orchestrator.results.run import Run
from orchestrator.terminal import strict_json

LONGEST_NAME = 1024

# Times are in nanoseconds, like those of Bencher.
UNITS: Mapping[Unit, float] = {"ms": 1e6, "bytes": 1.0, "joules": 1.0, "count": 1.0}

Metric = dict[str, float]


def render(run: Run) -> str:
    times, comparisons = times_ns(run), by_candidate(run.comparisons)
    benchmarks: dict[str, dict[str, Metric]] = {}
    for arm in run.arms:
        if arm.time_ms is None:
            continue
        name = arm.key
        cpu = "cpu" if run.plan.judge == "cpu" else ""
        bounds = quartiles(times[name]) if name in times else (None, None)
        measures = {cpu or "latency": _metric(round(arm.time_ms * 1e6, 3), *bounds)}
        comparison = comparisons.get(name)
        if comparison and comparison.ratio is not None:
            measures[f"{cpu}-ratio" if cpu else "ratio"] = _metric(
                comparison.ratio, comparison.ci_low, comparison.ci_high
            )
        benchmarks[_name(name)] = measures
    for spec, arm, figure in metrics_of_arms(run):
        benchmarks.setdefault(_name(arm.key), {})[spec.name] = _metric(figure * UNITS[spec.unit], None, None)
    for comparison in run.evaluation.of_metrics:
        name, metric = comparison.pair.arms[1], comparison.pair.metric
        if comparison.ratio is not None:
            what, amount = "ratio", _metric(comparison.ratio, comparison.ci_low, comparison.ci_high)
        elif comparison.difference is not None:
            ends = comparison.difference_low, comparison.difference_high
            what, amount = "difference", _metric(comparison.difference, *ends)
        else:
            continue
        benchmarks.setdefault(_name(name), {})[f"{metric}-{what}"] = amount
    return strict_json.dump(benchmarks, indent=2)


def _name(arm: ArmKey) -> str:
    return key(f"{arm.case} {arm.target}", LONGEST_NAME)


def _metric(value: float, low: float | None, high: float | None) -> Metric:
    bounds = {} if low is None or high is None else {"lower_value": low, "upper_value": high}
    return {"value": value, **bounds}
