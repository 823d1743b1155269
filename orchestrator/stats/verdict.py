"""What an estimate says against the margin: same, slower, faster, or inconclusive with its reason."""

import math

from orchestrator.model import VerdictName
from orchestrator.stats.paired import Estimate


def judge(estimate: Estimate, margin: float, alpha: float) -> tuple[VerdictName, str]:
    """`alpha` is what one look may spend. `same` is an equivalence test: the 1 - 2 alpha interval inside the margin."""
    bound = math.log1p(margin)
    theta = estimate.theta
    if abs(theta) + estimate.half_width(2 * alpha) < bound:
        return "same", ""
    width = estimate.half_width(alpha)
    if theta - width > 0 and theta >= bound:
        return "slower", ""
    if theta + width < 0 and theta <= -bound:
        return "faster", ""
    if abs(theta) > width:
        return "inconclusive", f"a difference is there, but not clearly beyond the margin of {margin:.0%}"
    visible, needed = estimate.smallest_visible(alpha), estimate.rounds_for(bound, alpha)
    return "inconclusive", (
        f"too noisy: {estimate.rounds} rounds show slowdowns from {visible:.0%} on; "
        f"about {needed} would show {margin:.0%}"
    )


def seed_percent(theta: float) -> float:
    """The seed study's figure: (longer / shorter - 1) * 100, `+` if the candidate is the faster one."""
    return math.copysign(math.expm1(abs(theta)) * 100, -theta)
