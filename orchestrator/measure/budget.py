"""The time that some rounds may take, and the time that a visit of each case takes."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from orchestrator.measure.visit import Group

# A round that has begun may exceed the budget by this share of it.
OVERTIME = 0.05


@dataclass
class Budget:
    """A budget in seconds, or no limit, with the moment at which it began."""

    budget_s: float | None
    started: float
    # The last visit of each case took this many seconds.
    costs: dict[str, float] = field(default_factory=dict)
    # The last visit of each case for its first calls alone took this many seconds.
    once: dict[str, float] = field(default_factory=dict)
    # This caches the mean of the costs until one of them changes, because a round needs it for each case.
    _usual_s: float | None = None
    # The pilot of each group took this many seconds.
    pilots: list[float] = field(default_factory=list)

    def restart(self) -> None:
        """Begin the budget again, so that nothing that was done until now counts."""
        self.started = time.monotonic()

    @property
    def passed_s(self) -> float:
        return time.monotonic() - self.started

    @property
    def left_s(self) -> float:
        return float("inf") if self.budget_s is None else self.budget_s - self.passed_s

    @property
    def overtime_s(self) -> float:
        return 0.0 if self.budget_s is None else self.budget_s * OVERTIME

    def learn(self, group: Group, seconds: float) -> None:
        """Remember what a visit of these cases took."""
        self.costs.update((case.label, seconds / len(group)) for case in group)
        self._usual_s = None

    def learn_once(self, group: Group, seconds: float) -> None:
        """Remember what a visit of these cases for their first calls alone took."""
        self.once.update((case.label, seconds / len(group)) for case in group)

    def learn_pilot(self, seconds: float) -> None:
        self.pilots.append(seconds)

    @property
    def usual_pilot_s(self) -> float:
        return fmean(self.pilots) if self.pilots else 0.0

    def estimate_s(self, groups: Iterable[Group]) -> float:
        """Estimate the time that visits of these cases take: their last cost, or the average of the others."""
        if self._usual_s is None:
            self._usual_s = fmean(self.costs.values()) if self.costs else 0.0
        return sum(self.costs.get(case.label, self._usual_s) for group in groups for case in group)

    def estimate_once_s(self, group: Group) -> float:
        return sum(self.once.get(case.label, 0.0) for case in group)

    def fits(self, group: Group, *, once: bool = False) -> bool:
        """Return whether a round that has begun may visit these cases as well."""
        seconds = self.estimate_once_s(group) if once else self.estimate_s([group])
        return seconds <= self.left_s + self.overtime_s
