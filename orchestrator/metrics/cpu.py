"""The CPU time of a call after the warm-up, of all threads together; a busy machine disturbs it less than wall time."""

from orchestrator.metrics.spec import MetricSpec
from orchestrator.terminal.durations import format_time

SPEC = MetricSpec(
    name="cpu",
    about="CPU time a step",
    more="uses more CPU time",
    less="uses less CPU time",
    values=lambda replicate: tuple(replicate.cpu_bursts),
    figure=lambda arm: arm.cpu_ms,
    show=format_time,
)
