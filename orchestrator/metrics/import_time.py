"""The time that a worker takes to import TensorFlow: a property of a version, and not of a case."""

from orchestrator.metrics.spec import MetricSpec, log_of
from orchestrator.terminal.durations import format_time

SPEC = MetricSpec(
    name="import",
    about="import of TensorFlow",
    more="takes longer to import",
    less="takes less time to import",
    values=lambda replicate: log_of(replicate.import_ns),
    figure=lambda arm: arm.import_s * 1e3 if arm.import_s else None,
    show=format_time,
    margin=0.1,
    of_targets=True,
)
