"""The time from the call of a workload's `build` to its end."""

from orchestrator.metrics.spec import MetricSpec, log_of
from orchestrator.terminal.durations import format_time

SPEC = MetricSpec(
    name="build",
    about="build",
    more="takes longer to build",
    less="takes less time to build",
    values=lambda replicate: log_of(replicate.build_ns),
    figure=lambda arm: None if arm.build_s is None else arm.build_s * 1e3,
    show=format_time,
    of_openings=True,
    margin=0.1,
)
