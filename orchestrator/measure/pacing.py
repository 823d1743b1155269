"""What a budget allows: which rounds, which of their cases, and whether a disturbed visit is repeated. Pure."""

from collections.abc import Iterable, Mapping
from statistics import fmean

# Beyond its budget a run still makes two rounds, if they take no longer than this.
TWO_ROUNDS_S = 60.0
# Share of the rounds of a case until then: a machine that is never quiet must be measured as it is.
MOST_REDONE = 0.2


def limit_s(budget_s: float, number: int) -> float:
    """Return the time at which round `number` must end.

    At least two rounds are needed for any result, so they get more than the budget. Calls that take minutes are not
    worth that.
    """
    return budget_s if number > 2 else max(2 * budget_s, budget_s + TWO_ROUNDS_S)


def estimate_s(cases: Iterable[str], costs: Mapping[str, float]) -> float:
    """Estimate the time that visits of these cases take: their last cost, or the average of the others."""
    usual = fmean(costs.values()) if costs else 0.0
    return sum(costs.get(case, usual) for case in cases)


def ahead_s(number: int, first_look: int, rest_s: float, round_s: float) -> float:
    """Return the time from here to the end of the first look's round."""
    return rest_s + (first_look - number) * round_s if number <= first_look else 0.0


def may_repeat(left_s: float, visit_s: float, needed_s: float) -> bool:
    """Return whether a disturbed visit may be repeated: only in time that the rounds before the first look leave."""
    return visit_s + needed_s <= left_s


def within_share(repeated: Iterable[int], number: int) -> bool:
    """Return whether each of these cases may have one more of its visits repeated by round `number`."""
    return all(count < max(1, int(MOST_REDONE * number)) for count in repeated)
