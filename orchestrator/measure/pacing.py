"""What a budget allows: which cases a round visits, and whether a disturbed visit is repeated. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from orchestrator.stats.looks import FEWEST_ROUNDS

# Share of the rounds of a case until then: a machine that is never quiet must be measured as it is.
MOST_REDONE = 0.2


@dataclass(frozen=True)
class Waiting:
    """Cases that are measured together: the seconds that a visit of them takes, and the rounds that they have."""

    visit_s: float
    rounds: int

    @property
    def needed_s(self) -> float:
        """The time until these cases can be judged, and at least that of one more visit."""
        return self.visit_s * max(FEWEST_ROUNDS - self.rounds, 1)


def choose(waiting: Sequence[Waiting], left_s: float) -> frozenset[int]:
    """Return which cases to visit in the time that is left.

    Cases that would not get enough rounds to be judged are left for later, the longest first: a few cases with a
    verdict are worth more than many without.
    """
    chosen: set[int] = set()
    for index in sorted(range(len(waiting)), key=lambda index: waiting[index].needed_s):
        left_s -= waiting[index].needed_s
        if left_s < 0:
            break
        chosen.add(index)
    return frozenset(chosen)


def rounds_that_fit(waiting: Iterable[Waiting], left_s: float) -> int:
    """Return how many more rounds of all these cases fit into the time that is left."""
    round_s = sum(each.visit_s for each in waiting)
    return int(left_s / round_s) if round_s > 0 else 0


def estimate_s(cases: Iterable[str], costs: Mapping[str, float]) -> float:
    """Estimate the time that visits of these cases take: their last cost, or the average of the others."""
    usual = fmean(costs.values()) if costs else 0.0
    return sum(costs.get(case, usual) for case in cases)


def may_repeat(left_s: float, visit_s: float, needed_s: float) -> bool:
    """Return whether a disturbed visit may be repeated: only in time that no other case needs to be judged."""
    return visit_s + needed_s <= left_s


def within_share(repeated: Iterable[int], number: int) -> bool:
    """Return whether each of these cases may have one more of its visits repeated by round `number`."""
    return all(count < max(1, int(MOST_REDONE * number)) for count in repeated)
