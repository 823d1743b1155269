"""The most memory of the GPU that TensorFlow had in use; on a CPU there is none."""

from orchestrator.metrics.spec import MetricSpec, log_of, show_bytes

SPEC = MetricSpec(
    name="gpu_memory",
    about="peak memory of the GPU",
    more="needs more memory of the GPU",
    less="needs less memory of the GPU",
    worse="more",
    better="less",
    values=lambda replicate: log_of(replicate.gpu_memory_kb),
    figure=lambda arm: arm.gpu_memory_bytes,
    unit="bytes",
    show=show_bytes,
    margin=0.05,
)
