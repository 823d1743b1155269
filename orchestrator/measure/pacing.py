"""What a budget allows: which cases a round visits, and whether a disturbed visit is repeated. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from orchestrator.stats.looks import FEWEST_ROUNDS

# Share of the rounds of a case until then: a machine that is never quiet must be measured as it is.
MOST_REDONE = 0.2


@dataclass(frozen=True)
class Waiting:
    """Cases that are measured together: the seconds that a visit of them takes, and the rounds that they have.

    They may have been postponed before.
    """

    visit_s: float
    rounds: int
    postponed: bool = False

    @property
    def is_short(self) -> bool:
        """Whether these cases have too few rounds to be judged."""
        return self.rounds < FEWEST_ROUNDS

    @property
    def needed_s(self) -> float:
        """The time until these cases can be judged, and at least that of one more visit."""
        return self.visit_s * max(FEWEST_ROUNDS - self.rounds, 1)

    @property
    def _rank(self) -> tuple[bool, bool, float]:
        """What was begun goes before more rounds of what can be judged, and that before what was postponed."""
        return self.postponed, not self.is_short, self.needed_s


def choose(waiting: Sequence[Waiting], left_s: float, overtime_s: float = 0.0) -> frozenset[int]:
    """Return which cases to visit in the time that is left.

    Cases that would not get enough rounds to be judged are left for later, the longest first: a few cases with a
    verdict are worth more than many without. Those that were begun may take some overtime. Where no case can get
    enough, the time goes to rounds that count once there are more.
    """
    ranked = sorted(enumerate(waiting), key=lambda entry: entry[1]._rank)
    chosen: set[int] = set()
    needed_s = 0.0
    for index, each in ranked:
        allowed_s = left_s + (overtime_s if each.is_short and not each.postponed else 0.0)
        if needed_s + each.needed_s <= allowed_s:
            needed_s += each.needed_s
            chosen.add(index)
    return frozenset(chosen) or _fill(ranked, left_s)


def _fill(ranked: Iterable[tuple[int, Waiting]], left_s: float) -> frozenset[int]:
    chosen: set[int] = set()
    for index, each in ranked:
        if each.visit_s <= left_s:
            left_s -= each.visit_s
            chosen.add(index)
    return frozenset(chosen)


def rounds_that_fit(waiting: Iterable[Waiting], left_s: float) -> int:
    """Return how many more rounds of all these cases fit into the time that is left."""
    round_s = sum(each.visit_s for each in waiting)
    return max(int(left_s / round_s), 0) if round_s > 0 else 0


def estimate_s(cases: Iterable[str], costs: Mapping[str, float]) -> float:
    """Estimate the time that visits of these cases take: their last cost, or the average of the others."""
    usual = fmean(costs.values()) if costs else 0.0
    return sum(costs.get(case, usual) for case in cases)


def may_repeat(visit_s: float, visited: Iterable[Waiting], ahead: Iterable[Waiting], left_s: float) -> bool:
    """Return whether a disturbed visit may be repeated.

    Only in time that no case needs to be judged, and that this round does not need for the cases ahead.
    """
    needed_s = sum(each.needed_s for each in visited if each.is_short) + sum(each.needed_s for each in ahead)
    return visit_s + needed_s <= left_s


def within_share(repeated: Iterable[int], number: int) -> bool:
    """Return whether each of these cases may have one more of its visits repeated by round `number`."""
    return all(count < max(1, int(MOST_REDONE * number)) for count in repeated)
