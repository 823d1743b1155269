"""The number of Python functions that a replicate traced into graphs; none counts as one, which has a logarithm."""

from orchestrator.metrics.spec import MetricSpec, log_of

SPEC = MetricSpec(
    key="traces",
    name="traces",
    about="traces",
    more="traces more functions",
    less="traces fewer functions",
    worse="more",
    better="less",
    logs=lambda replicate: log_of(max(replicate.traces or 0, 1)),
    figure=lambda arm: arm.traces,
    unit="traces",
    show=lambda count: f"{count:.0f}",
)
