"""The time of a call after the warm-up, per step; of a program the time of all of it."""

from orchestrator.metrics.spec import MetricSpec
from orchestrator.terminal.durations import format_time

SPEC = MetricSpec(
    name="time",
    about="time a step",
    more="is slower",
    less="is faster",
    values=lambda replicate: tuple(replicate.bursts),
    figure=lambda arm: arm.median_ms,
    show=format_time,
)
