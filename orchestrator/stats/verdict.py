"""The verdict of an estimate against the margin: same, slower, faster, or inconclusive with a reason."""

import math
from typing import Protocol

from orchestrator.model import VerdictName
from orchestrator.stats.paired import Estimate


class Estimated(Protocol):
    """A difference on the log scale that has an interval."""

    @property
    def theta(self) -> float: ...

    def half_width(self, alpha: float) -> float: ...


def judge(estimate: Estimate, margin: float, alpha: float) -> tuple[VerdictName, str]:
    """Return the verdict and its reason; `alpha` is the error that one look may spend."""
    verdict, reason = against(estimate, margin, alpha)
    if verdict != "inconclusive" or reason:
        return verdict, reason
    bound = math.log1p(margin)
    visible, needed = estimate.smallest_visible(alpha), estimate.rounds_for(bound, alpha)
    return "inconclusive", (
        f"too noisy: {estimate.rounds} rounds show slowdowns from {visible:.0%} on; "
        f"about {needed} would show {margin:.0%}"
    )


def against(estimate: Estimated, margin: float, alpha: float) -> tuple[VerdictName, str]:
    """Judge an estimate against the margin, and return the verdict and its reason.

    `same` is an equivalence test: the 1 - 2 alpha interval is inside the margin. An inconclusive verdict without a
    reason is due to a lack of data.
    """
    bound, theta = math.log1p(margin), estimate.theta
    if abs(theta) + estimate.half_width(2 * alpha) < bound:
        return "same", ""
    width = estimate.half_width(alpha)
    if theta - width > 0 and theta >= bound:
        return "slower", ""
    if theta + width < 0 and theta <= -bound:
        return "faster", ""
    if abs(theta) > width:
        return "inconclusive", f"a difference is there, but not clearly beyond the margin of {margin:.0%}"
    return "inconclusive", ""


def seed_percent(theta: float) -> float:
    """Return the seed study's figure: (longer / shorter - 1) * 100, `+` if the candidate is the faster one."""
    return math.copysign(math.expm1(abs(theta)) * 100, -theta)
