"""Scales on which figures of a metric are compared: by their ratio, or by their difference in the metric's unit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.stats.slowdown import LARGEST_SHOWN, format_margin

MOST_LOG = 700.0


class MetricScale(Protocol):
    """The scale on which samples are subtracted from each other; 0 is no difference."""

    @property
    def resolution(self) -> float:
        """The step in which figures are read: no mean of a few rounds is more certain than that."""

    def to_scale(self, margin: float) -> float: ...

    def from_scale(self, distance: float) -> float: ...

    def show_margin(self, margin: float) -> str: ...

    def describe_visible(self, visible: float, what: str) -> str:
        """Complete a sentence about rounds with the smallest difference that they show; it is given like a margin."""

    def as_fields(self, theta: float, ends: tuple[float, float] | None) -> dict[str, Any]:
        """Return the fields of a magnitude for an estimate and the ends of its interval."""


@dataclass(frozen=True)
class Ratios:
    """Samples are logs and margins are shares, because times and sizes scatter in proportion to themselves."""

    resolution: float = 0.0

    def to_scale(self, margin: float) -> float:
        return math.log1p(margin)

    def from_scale(self, distance: float) -> float:
        return math.expm1(distance)

    def show_margin(self, margin: float) -> str:
        return format_margin(margin)

    def describe_visible(self, visible: float, what: str) -> str:
        return "do not even show a factor of two" if visible > LARGEST_SHOWN else f"show {what} from {visible:.0%} on"

    def as_fields(self, theta: float, ends: tuple[float, float] | None) -> dict[str, Any]:
        low, high = map(_ratio, ends) if ends else (None, None)
        return {"ratio": _ratio(theta), "ci_low": low, "ci_high": high}


@dataclass(frozen=True)
class Differences:
    """Samples are figures and margins are amounts, because what both arms have in common must not matter."""

    show_margin: Callable[[float], str]
    resolution: float = 0.0

    def to_scale(self, margin: float) -> float:
        return margin

    def from_scale(self, distance: float) -> float:
        return distance

    def describe_visible(self, visible: float, what: str) -> str:
        return f"show differences from {self.show_margin(visible)} on"

    def as_fields(self, theta: float, ends: tuple[float, float] | None) -> dict[str, Any]:
        low, high = ends or (None, None)
        return {"difference": theta, "difference_low": low, "difference_high": high}


RATIOS = Ratios()


def _ratio(log: float) -> float:
    # An interval from only two rounds may be too wide for a float.
    return math.exp(min(log, MOST_LOG))
