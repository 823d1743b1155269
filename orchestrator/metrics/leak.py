"""How many bytes of memory each later call of a replicate adds, however large the process is."""

from orchestrator.metrics.spec import Figures, MetricSpec, Values
from orchestrator.metrics.units import BYTES_PER_CALL

# Fewer say nothing about a leak: allocators keep what they have.
FEWEST_CALLS = 200
# The kernel counts memory in pages.
PAGE = 4096


def is_known(replicate: Figures) -> bool:
    """Return whether a replicate made enough calls to tell."""
    return replicate.growth_bytes is not None and (replicate.growth_calls or 0) >= FEWEST_CALLS


def _values(replicate: Figures) -> Values:
    return (float(replicate.growth_bytes or 0),) if is_known(replicate) else ()


SPEC = MetricSpec(
    name="leak",
    about="growth of memory per call",
    more="grows more with each call",
    less="grows less with each call",
    worse="more",
    better="less",
    values=_values,
    units=BYTES_PER_CALL,
    resolution=PAGE / FEWEST_CALLS,
    figure=lambda arm: arm.leak_bytes,
    unit="bytes",
    show=BYTES_PER_CALL.show,
    margin=1024.0,
    # Of the calls of a replicate, those of its first burst come before the first reading.
    least_calls=FEWEST_CALLS * 5 // 4,
)
