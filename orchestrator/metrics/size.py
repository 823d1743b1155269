"""How much disk an environment takes: the packages of a virtual one, or an image with all that it is built on."""

from orchestrator.metrics.spec import MetricSpec, show_bytes

SPEC = MetricSpec(
    name="size",
    about="size of the environment",
    more="takes more disk",
    less="takes less disk",
    worse="more",
    better="less",
    values=lambda replicate: (),
    figure=lambda arm: arm.environment_bytes,
    unit="bytes",
    show=show_bytes,
    margin=0.05,
    of_targets=True,
    exact=True,
)
