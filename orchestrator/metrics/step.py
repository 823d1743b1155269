"""The time of a step of a program that calls Keras' `fit`; most programs have none."""

from orchestrator.metrics.spec import MetricSpec, log_of
from orchestrator.terminal.durations import format_time

SPEC = MetricSpec(
    name="step",
    about="a step of fit",
    more="is slower in a step of fit",
    less="is faster in a step of fit",
    values=lambda replicate: log_of(replicate.step_ns),
    figure=lambda arm: arm.step_ms,
    show=format_time,
)
