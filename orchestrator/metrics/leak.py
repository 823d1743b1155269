"""By how much memory would grow with a thousand more calls, as a factor of what the replicate held before.

A factor, because one kilobyte per call matters to a small process and not to a large one.
"""

import math

from orchestrator.metrics.spec import Figures, Logs, MetricSpec, show_bytes

# Fewer say nothing about a leak: allocators keep what they have.
FEWEST_CALLS = 200
CALLS = 1000
# Memory that shrinks with each call does not do so for ever.
LEAST = 0.5


def is_known(replicate: Figures) -> bool:
    """Return whether a replicate made enough calls to tell."""
    return replicate.growth_bytes is not None and (replicate.growth_calls or 0) >= FEWEST_CALLS


def _logs(replicate: Figures) -> Logs:
    if not is_known(replicate) or not replicate.peak_rss_kb:
        return ()
    return (math.log(max(1 + CALLS * (replicate.growth_bytes or 0) / (replicate.peak_rss_kb * 1024), LEAST)),)


SPEC = MetricSpec(
    key="leak",
    name="leak",
    about="growth of memory with 1,000 calls",
    more="grows more with each call",
    less="grows less with each call",
    worse="more",
    better="less",
    logs=_logs,
    figure=lambda arm: arm.leak_bytes,
    unit="bytes",
    show=lambda size: f"{show_bytes(size)} a call",
    margin=0.05,
    # Of the calls of a replicate, those of its first burst come before the first reading.
    least_calls=FEWEST_CALLS * 5 // 4,
)
