"""The verdict of an estimate against the margin, and the interval that it rests on."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from orchestrator.model import Size, VerdictName
from orchestrator.stats.paired import detectable, freedom_of
from orchestrator.stats.scale import RATIOS, MetricScale

# Higher numbers of rounds are not predicted, because two dozen rounds allow only a guess at hundreds.
MOST_PROMISED = 60


class Levels(NamedTuple):
    """The levels at which one look judges: whether two arms are the same, and whether they differ."""

    same: float
    differ: float


@dataclass(frozen=True)
class Judgement:
    """A verdict, how large the difference is, and half the width of the interval that the verdict rests on.

    A slight difference is certain, and inside the margin; one that is beyond has its whole interval outside of it.
    """

    verdict: VerdictName
    size: Size | None
    half_width: float


class Estimated(Protocol):
    """A difference on the scale of its metric that has an interval."""

    @property
    def theta(self) -> float: ...

    def half_width(self, level: float) -> float: ...

    def reach(self, level: float) -> float: ...


def judge_estimate(estimate: Estimated, margin: float, levels: Levels, scale: MetricScale = RATIOS) -> Judgement:
    """Judge an estimate against the margin.

    An interval inside the margin shows that arms are the same, and one that excludes 0 that they differ. An estimate
    that is called slower or faster is therefore beyond half the margin, because otherwise its interval would lie
    inside.
    """
    bound, distance = scale.to_scale(margin), abs(estimate.theta)
    width = estimate.reach(levels.same)
    if distance + width < bound:
        slight = distance > max(width, estimate.half_width(levels.same))
        return Judgement("same", "slight" if slight else None, width)
    width = estimate.half_width(levels.differ)
    if distance <= width:
        return Judgement("inconclusive", None, width)
    size: Size = "beyond" if distance - width >= bound else "clear"
    return Judgement("slower" if estimate.theta > 0 else "faster", size, width)


def smallest_shown(
    spread: float, rounds: int, level: float, borrowed: float = 0.0, scale: MetricScale = RATIOS
) -> float:
    """Return the slowdown that this many rounds of this spread show, if only as a slight one, in nine of ten runs.

    `borrowed` are the degrees of freedom of the spread that other comparisons add.
    """
    return scale.from_scale(detectable(level, freedom_of(rounds) + borrowed) * spread / math.sqrt(rounds))


def rounds_for(
    spread: float, margin: float, level: float, beyond: int = 1, borrowed: float = 0.0, scale: MetricScale = RATIOS
) -> int | None:
    """Return how many rounds show a slowdown of the margin, or None if that is too many to predict."""
    wanted = range(beyond + 1, MOST_PROMISED + 1)
    return next((rounds for rounds in wanted if smallest_shown(spread, rounds, level, borrowed, scale) <= margin), None)


def describe_noise(
    spread: float, rounds: int, margin: float, level: float, borrowed: float = 0.0, scale: MetricScale = RATIOS
) -> str:
    """Describe what this many rounds can show, and how many would show the margin."""
    shown = scale.describe_visible(smallest_shown(spread, rounds, level, borrowed, scale), "slowdowns")
    needed = rounds_for(spread, margin, level, rounds, borrowed, scale)
    more = f"; about {needed} would show {scale.show_margin(margin)}" if needed else ""
    return f"too noisy: {rounds} rounds {shown}{more}"


def seed_percent(theta: float) -> float:
    """Return the seed study's figure: (longer / shorter - 1) * 100, `+` if the candidate is the faster one."""
    return math.copysign(math.expm1(abs(theta)) * 100, -theta)
