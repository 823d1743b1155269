"""Printed forms of how much two arms differ: a ratio or, for a metric that is judged by it, a difference."""

from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, Followed
from orchestrator.metrics.units import Units
from orchestrator.model import Comparison, Magnitude
from orchestrator.reports.columns import describe_rounds_so_far, format_estimate, format_interval, ratio


def show_estimate(magnitude: Magnitude, metric: Followed) -> str:
    """Return a ratio as in `1.10x`, or the difference of a metric that is judged by it, as in `+8.0 KiB per call`."""
    if magnitude.difference is None:
        return format_estimate(magnitude)
    return _units(metric).show_difference(magnitude.difference)


def show_interval(magnitude: Magnitude, metric: Followed) -> str:
    low, high = magnitude.difference_low, magnitude.difference_high
    if magnitude.difference is None or low is None or high is None:
        return format_interval(magnitude)
    return _units(metric).show_ends(magnitude.difference, low, high)


def show_magnitude(magnitude: Magnitude, metric: Followed) -> str:
    """Return the estimate with its interval: `1.10x (1.05-1.16)`, `+8.0 KiB per call (+7.9 to +8.1)`."""
    bounds = show_interval(magnitude, metric)
    return show_estimate(magnitude, metric) + (f" ({bounds})" if bounds else "")


def show_figures(comparison: Comparison) -> tuple[str, str]:
    """Return the estimate and its interval or, with too few rounds, the ratio so far and how many rounds there are."""
    if comparison.missing and comparison.seen_ratio is not None:
        return ratio(comparison.seen_ratio), describe_rounds_so_far(comparison)
    metric = comparison.pair.metric
    return show_estimate(comparison, metric), show_interval(comparison, metric)


def _units(metric: Followed) -> Units:
    units = None if metric == RESULTS else METRICS[metric].units
    assert units, f"{metric} is judged by ratios"
    return units
