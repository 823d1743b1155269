"""Determines how much a replicate should do, from a pilot of every arm.

All arms of a case make the same number of calls or, if they are quick, run for the same time. This is fixed before the
first round.
"""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

MAD_TO_SIGMA = 1.4826
# A call is settled when it and the next two are like the later half.
CALM = 3
MOST_WARMUP = 20
FEWEST_CALLS, MOST_CALLS = 6, 1000
# The spread of replicates around their arm that calls are weighed against; what shared cores show, and a pilot of one
# replicate an arm cannot tell.
BETWEEN = 0.05
# The least that a replicate's calls take: a share of what it takes to open it, and a time.
LEAST_SHARE, LEAST_CALLS_S = 0.5, 0.1
# That time where arms are said to take the same: only a narrow interval shows it.
PATIENT_CALLS_S = 0.5
# A burst is short: then what a neighbour does hits all arms alike. On two shared cores, of the same calls, twelve
# bursts of four left two thirds of the spread between equal arms that four bursts of twelve left. But each is led in by
# a call that is not timed, or by more of them, so few long calls stand in one burst.
BURST_S = 0.008
FEWEST_IN_BURST, ENOUGH_IN_BURST = 3, 6
# A call this long is not led in (`workloads/replicate.py`), so it can be a burst of its own.
LONG_CALL_S = 1.0
# A replicate's calls may always take so long. Beyond it they may take as long as it took to build what they call, and
# no longer: then they cost more patience than they bring certainty.
REPLICATE_CALLS_S = 2.0


@dataclass(frozen=True)
class Pilot:
    """A replicate of an arm: the time it took to open, and its calls after the first, in nanoseconds."""

    open_s: float
    calls_ns: tuple[int, ...]

    @property
    def call_s(self) -> float:
        return float(np.median(self.calls_ns)) / 1e9


@dataclass(frozen=True)
class Effort:
    """The numbers of calls left out after the second, of bursts, and of calls per burst without its lead-in call."""

    warmup: int
    bursts: int
    calls: int

    @property
    def in_all(self) -> int:
        return self.warmup + self.bursts * (self.calls + 1)


def efforts(
    pilots: Mapping[str, Sequence[Pilot]], round_s: float | None = None, patient: Container[str] = ()
) -> dict[str, Effort]:
    """Return the effort for each case.

    If the time of a round of all cases is limited, the number of calls is reduced before the number of rounds, because
    it is the number of replicates that matters.
    """

    def at(share: float) -> dict[str, Effort]:
        return {case: effort(own, share, patient=case in patient) for case, own in pilots.items()}

    found = at(1.0)
    if round_s is None:
        return found
    opening = sum(pilot.open_s for own in pilots.values() for pilot in own)
    calling = sum(found[case].in_all * pilot.call_s for case, own in pilots.items() for pilot in own)
    share = max(0.0, round_s - opening) / max(calling, 1e-9)
    return at(min(share, 1.0))


def effort(pilots: Sequence[Pilot], share: float = 1.0, *, patient: bool = False) -> Effort:
    """Return the effort for the arms of one case together, since all make the same calls.

    `share` is the share of what would be best.
    """
    if not pilots:
        return Effort(0, 1, 1)
    slowest = max(max(pilot.call_s for pilot in pilots), 1e-9)
    always = max(1, int(REPLICATE_CALLS_S / slowest))
    affordable = max(always, int(_mean_build_s(pilots) / slowest))
    least_s = PATIENT_CALLS_S if patient else LEAST_CALLS_S
    calls = max(min(math.ceil(_worth(pilots, least_s) * share), affordable), min(FEWEST_CALLS, always))
    settling = max(calls_to_settle(pilot.calls_ns) for pilot in pilots)
    warmup = min(math.ceil(settling * share), MOST_WARMUP, always - 1)
    # An even number of them: forth and back.
    bursts = max(2 * round(calls / _burst(pilots) / 2), 2 if calls >= 2 * _fewest(pilots) else 1)
    return Effort(warmup, bursts, math.ceil(calls / bursts))


def _burst(pilots: Sequence[Pilot]) -> int:
    """Return the number of calls in a burst.

    This is as many as take its time on average over the arms, and enough for the quickest of them.
    """
    average = max(_mean_call_s(pilots), 1e-9)
    enough = min(math.ceil(BURST_S / max(_quickest_s(pilots), 1e-9)), ENOUGH_IN_BURST)
    return max(math.ceil(BURST_S / average), enough, _fewest(pilots))


def _fewest(pilots: Sequence[Pilot]) -> int:
    return 1 if _quickest_s(pilots) >= LONG_CALL_S else FEWEST_IN_BURST


def _quickest_s(pilots: Sequence[Pilot]) -> float:
    return min(pilot.call_s for pilot in pilots)


def _mean_open_s(pilots: Sequence[Pilot]) -> float:
    return sum(pilot.open_s for pilot in pilots) / len(pilots)


def _mean_build_s(pilots: Sequence[Pilot]) -> float:
    """Return the mean time of opening without its two calls."""
    return max(0.0, _mean_open_s(pilots) - 2 * _mean_call_s(pilots))


def _mean_call_s(pilots: Sequence[Pilot]) -> float:
    return sum(pilot.call_s for pilot in pilots) / len(pilots)


def _worth(pilots: Sequence[Pilot], least_s: float) -> int:
    """Return the best number of calls by Kalibera and Jones.

    It grows with the scatter of calls, and with the cost of opening another replicate.
    """
    call_s = max(_mean_call_s(pilots), 1e-9)
    dear = _mean_open_s(pilots) / call_s
    within = math.sqrt(sum(scatter(pilot.calls_ns) ** 2 for pilot in pilots) / len(pilots))
    best = math.sqrt(dear) * within / BETWEEN
    # Their calls are independent; here a busy neighbour slows all calls of a moment alike, and only time averages it.
    least = max(dear * LEAST_SHARE, least_s / call_s, FEWEST_CALLS)
    return min(math.ceil(max(best, least)), MOST_CALLS)


def calls_to_settle(calls_ns: Sequence[int]) -> int:
    """Return how many calls pass before three in a row are like the later half."""
    logs = np.log(np.maximum(np.array(calls_ns), 1))
    half = logs[len(logs) // 2 :]
    center = float(np.median(half))
    spread = MAD_TO_SIGMA * float(np.median(np.abs(half - center)))
    like = np.abs(logs - center) <= 3 * max(spread, 0.01)
    for start in range(len(logs) - CALM + 1):
        if like[start : start + CALM].all():
            return start
    return len(logs)


def scatter(calls_ns: Sequence[int]) -> float:
    """Return the spread of log times inside one replicate; a single spike does not count."""
    logs = np.log(np.maximum(np.array(calls_ns), 1))
    return MAD_TO_SIGMA * float(np.median(np.abs(logs - np.median(logs))))
