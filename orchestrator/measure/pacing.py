"""The content of a round: which cases it visits, how often, and whether a disturbed visit is repeated. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.stats.looks import FEWEST_ROUNDS
from orchestrator.stats.paired import quantile

# At most this share of a case's rounds is repeated: a machine that is never quiet must be measured as it is.
MOST_REDONE = 0.2
# This is the variance between replicates of one worker, as a multiple of the variance between workers. `bench/workers`
# measured from 10 to more than 100. A small figure keeps rounds short, and a budget then holds more of them.
REPLICATES_VARY, MOST_VISITS = 8.0, 8
# The looks leave about this share of the error for the last of them.
USUAL_ERROR = 0.02


@dataclass(frozen=True)
class Waiting:
    """Cases that are measured together: how many seconds of a round they take, and how many rounds they have.

    They may have been postponed before. `behind_s` is what their first round still lacks: the pilot is one visit of it.
    """

    round_s: float
    rounds: int
    postponed: bool = False
    behind_s: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether these cases have too few rounds to be judged."""
        return self.rounds < FEWEST_ROUNDS

    @property
    def missing(self) -> int:
        """The rounds until these cases can be judged, and at least one more."""
        return max(FEWEST_ROUNDS - self.rounds, 1)

    @property
    def needed_s(self) -> float:
        """The time that these missing rounds take, and what the first one lacks."""
        return self.round_s * self.missing + self.behind_s

    @property
    def _rank(self) -> tuple[bool, bool, float]:
        """The rank of these cases: begun ones are first, then those that can already be judged, then postponed ones."""
        return self.postponed, not self.is_short, self.needed_s


def visits_per_round(
    start_s: float,
    visits_s: float,
    left_s: float = math.inf,
    rounds: int = 0,
    most: int = 0,
    behind_s: float = 0.0,
) -> int:
    """Return how often a round visits its cases if its workers take this long to start.

    That is at most the number that makes the mean of all rounds vary least for the time spent (Kalibera and Jones). It
    is smaller if little time is left: an interval is wide if rounds are few, however often they visit. `rounds` of at
    most `most` rounds have been measured. The first one still lacks every visit but the pilot; each takes `behind_s`.
    """
    if visits_s <= 0:
        return 1
    efficient = min(max(round(math.sqrt(REPLICATES_VARY * start_s / visits_s)), 1), MOST_VISITS)
    if math.isinf(left_s):
        return efficient
    counts = range(1, efficient + 1)
    fitting = {count: rounds_that_fit(start_s + count * visits_s, left_s - (count - 1) * behind_s) for count in counts}
    return min(counts, key=lambda count: (_relative_width(min(rounds + fitting[count], most), count), count))


def _relative_width(rounds: int, visits: int) -> float:
    """Return the width of an interval after some rounds, as a multiple of what workers differ by."""
    if rounds < FEWEST_ROUNDS:
        # There are too few rounds to be judged, so more of them are better.
        return math.inf if rounds < 1 else 1e9 / rounds
    return quantile(1 - USUAL_ERROR / 2, rounds - 1) * math.sqrt((1 + REPLICATES_VARY / visits) / rounds)


def choose_waiting(
    waiting: Sequence[Waiting], left_s: float, overtime_s: float = 0.0, start_s: float = 0.0
) -> frozenset[int]:
    """Return the cases that get enough rounds in the time that is left, if every round starts new workers.

    The others are left for later, the longest first: a few cases with a verdict are worth more than many without.
    Those that were begun may take some overtime.
    """
    chosen: set[int] = set()
    needed_s, rounds = 0.0, 0
    for index, each in _by_rank(waiting):
        allowed_s = left_s + (overtime_s if each.is_short and not each.postponed else 0.0)
        starts = max(rounds, each.missing)
        if needed_s + each.needed_s + starts * start_s <= allowed_s:
            needed_s, rounds = needed_s + each.needed_s, starts
            chosen.add(index)
    return frozenset(chosen)


def fill(waiting: Sequence[Waiting], left_s: float) -> frozenset[int]:
    """Return the cases to visit if none can get enough rounds: those that are nearest to a verdict.

    Its rounds may take less time than was expected, and they count when --resume adds others.
    """
    return next((frozenset([index]) for index, each in _by_rank(waiting) if each.round_s <= left_s), frozenset())


def _by_rank(waiting: Sequence[Waiting]) -> list[tuple[int, Waiting]]:
    return sorted(enumerate(waiting), key=lambda entry: entry[1]._rank)


def rounds_that_fit(round_s: float, left_s: float) -> int:
    return max(int(left_s / round_s), 0) if round_s > 0 else 0


def may_repeat(visit_s: float, visited: Iterable[Waiting], ahead: Iterable[Waiting], left_s: float) -> bool:
    """Return whether a disturbed visit may be repeated.

    It may use only time that no case needs to be judged, and that this round does not need for the cases ahead.
    """
    needed_s = sum(each.needed_s for each in visited if each.is_short) + sum(each.needed_s for each in ahead)
    return visit_s + needed_s <= left_s


def is_exception(disturbed: int, visits: int) -> bool:
    """Return whether a disturbance is unusual after these visits: otherwise it would hit a repetition as well."""
    return 2 * disturbed <= visits


def within_share(repeated: Iterable[int], number: int) -> bool:
    """Return whether each of these cases may have one more of its visits repeated by round `number`."""
    return all(count < max(1, int(MOST_REDONE * number)) for count in repeated)
