"""The whole first call, with what it costs once, such as tracing; a program has none."""

from orchestrator.metrics.spec import MetricSpec, log_of
from orchestrator.terminal.durations import format_time

SPEC = MetricSpec(
    name="first",
    about="first call",
    more="takes longer for the first call",
    less="takes less time for the first call",
    values=lambda replicate: log_of(replicate.first_call_ns),
    figure=lambda arm: arm.first_call_ms,
    show=format_time,
    of_openings=True,
    # What happens once scatters more than what happens often.
    margin=0.1,
)
