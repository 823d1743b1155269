"""Computes the ratio of every visited version to the first one. Pure.

Only versions of the same run have a measured ratio. The ratios of other versions are joined over the runs between them:
log ratios add up, and so do the squares of their half intervals, because runs are independent of each other.
"""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.bisect.search import BisectFinding, latest


@dataclass(frozen=True)
class JoinedRatio:
    """A ratio joined over `over` runs; with one run, it is that run's ratio."""

    ratio: float
    ci_low: float
    ci_high: float
    over: int


def join_ratios(first: str, findings: Iterable[BisectFinding]) -> dict[str, JoinedRatio]:
    """Return the ratio of each version, joined over the path that leaves the narrowest interval."""
    edges: dict[str, list[tuple[str, float, float]]] = {}
    for finding in latest(findings).values():
        if finding.ratio is None or finding.ci_low is None or finding.ci_high is None:
            continue
        theta, width = math.log(finding.ratio), (math.log(finding.ci_high) - math.log(finding.ci_low)) / 2
        edges.setdefault(finding.earlier, []).append((finding.later, theta, width**2))
        edges.setdefault(finding.later, []).append((finding.earlier, -theta, width**2))
    done: dict[str, JoinedRatio] = {}
    ahead = [(0.0, 0, first, 0.0)]
    while ahead:
        square, over, version, theta = heapq.heappop(ahead)
        if version in done:
            continue
        width = math.sqrt(square)
        done[version] = JoinedRatio(math.exp(theta), math.exp(theta - width), math.exp(theta + width), over)
        for other, step, own in edges.get(version, ()):
            if other not in done:
                heapq.heappush(ahead, (square + own, over + 1, other, theta + step))
    return done
