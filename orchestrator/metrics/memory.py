"""The peak memory of a replicate after its build and its first calls, as many in every arm, without pages of files.

Of a program, it is the peak of the whole process.
"""

from orchestrator.metrics.spec import MetricSpec, log_of, show_bytes

SPEC = MetricSpec(
    name="memory",
    about="peak memory",
    more="needs more memory",
    less="needs less memory",
    worse="more",
    better="less",
    values=lambda replicate: log_of(replicate.memory_kb or replicate.resident_kb),
    figure=lambda arm: arm.memory_bytes,
    unit="bytes",
    show=show_bytes,
    margin=0.05,
)
