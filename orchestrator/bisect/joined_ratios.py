"""Computes by how much every visited version differs from the first one. Pure.

Only versions of the same run have a measured ratio. The ratios of other versions are joined over the runs between them:
log ratios add up, and so do the squares of how far their intervals reach on one side, because runs are independent of
each other. So do differences, of a metric that is judged by them.
"""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.bisect.search import BisectFinding, latest
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, Followed
from orchestrator.model import Magnitude
from orchestrator.stats.scale import RATIOS


@dataclass(frozen=True, kw_only=True)
class JoinedRatio(Magnitude):
    """A ratio or a difference joined over `over` runs; with one run, it is that run's."""

    over: int


def join_ratios(first: str, findings: Iterable[BisectFinding], metric: Followed) -> dict[str, JoinedRatio]:
    """Return the ratio of each version, joined over the path that leaves the narrowest interval."""
    scale = RATIOS if metric == RESULTS else METRICS[metric].scale
    edges: dict[str, list[tuple[str, float, float, float]]] = {}
    for finding in latest(findings).values():
        theta, ends = finding.estimate, finding.ends
        if theta is None or ends is None:
            continue
        below, above = (theta - ends[0]) ** 2, (ends[1] - theta) ** 2
        edges.setdefault(finding.earlier, []).append((finding.later, theta, below, above))
        edges.setdefault(finding.later, []).append((finding.earlier, -theta, above, below))
    done: dict[str, JoinedRatio] = {}
    ahead = [(0.0, 0, first, 0.0, 0.0, 0.0)]
    while ahead:
        _, over, version, theta, below, above = heapq.heappop(ahead)
        if version in done:
            continue
        ends = theta - math.sqrt(below), theta + math.sqrt(above)
        done[version] = JoinedRatio(**scale.as_fields(theta, ends), over=over)
        for other, step, low, high in edges.get(version, ()):
            if other not in done:
                sides = below + low, above + high
                heapq.heappush(ahead, (sum(sides), over + 1, other, theta + step, *sides))
    return done
