"""Determines how much each arm does in a replicate, from a pilot of every arm.

An arm makes its calls in many short bursts that are spread over the visit, because a busy neighbour slows all calls of
a moment alike: what counts is the number of moments. Each arm has its own number of calls in a burst, so that a quick
one is timed for as long as a slow one; in all else arms that are compared with each other do the same, because calls
still get quicker while a replicate is timed. All of this is fixed before the first round.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

MAD_TO_SIGMA = 1.4826
# A call is settled when it and the next two are like the later half.
CALM = 3
MOST_WARMUP = 20
# A burst is short: then what a neighbour does hits all arms alike.
BURST_S = 0.008
# So that the clock's own readings do not fill a run's files; only calls of less than five microseconds, for which
# there is no verdict, would need more.
MOST_IN_BURST = 1600
# A worker extends a burst that is too short, up to this many calls.
MOST_BY_ITSELF = 50
FEWEST_BURSTS, MOST_BURSTS = 8, 20
# A call this long fills a burst alone. There are as many bursts as fit into this time, within these limits; more where
# the scatter of calls is the larger part of the error.
SLOW_CALL_S, SLOW_BURSTS_S = 0.1, 1.0
FEWEST_SLOW_BURSTS, MOST_SLOW_BURSTS = 3, 8
# Calls that take about as long, up to this factor, are equally many in a burst.
ABOUT_AS_LONG = 1.5
# The spread of replicates around their arm that bursts are weighed against; a pilot of one replicate cannot tell it.
BETWEEN = 0.05
# The first calls of an arm in an early round, with that of a whole visit, if the others take no more than this share of
# a whole visit; `bench/first_calls.py` shows what they are good for.
FIRST_CALLS, ONCE_SHARE = 2, 0.7
# What a worker does before each burst, untimed: a call, or calls for this time. A call of a second needs none.
LEAD_IN_S, LONG_CALL_S = 0.005, 1.0


Key = TypeVar("Key")


@dataclass(frozen=True)
class Pilot:
    """A replicate of an arm: the time it took to open, and the calls of its bursts in nanoseconds."""

    open_s: float
    bursts_ns: tuple[tuple[int, ...], ...]

    @property
    def calls_ns(self) -> tuple[int, ...]:
        return tuple(call for burst in self.bursts_ns for call in burst)

    @property
    def call_s(self) -> float:
        return max(float(np.median(self.calls_ns)) / 1e9, 1e-9)


@dataclass(frozen=True)
class Effort:
    """The numbers of calls left out after the second, of bursts, and of calls per burst without its lead-in.

    `once` is how often an early round visits the arm in addition, for its first call and no other.
    """

    warmup: int
    bursts: int
    calls: int
    once: int = 0


# A program is run once in each visit: it builds, warms up and makes its calls by itself.
ONCE = Effort(0, 1, 1)


def first_effort(second_s: float, *, patient: bool = False) -> Effort:
    """Return the effort of a pilot, of which only the second call is known: the floor for a call of that time."""
    if second_s >= SLOW_CALL_S:
        return Effort(0, _slow_bursts(second_s), 1)
    return Effort(0, MOST_BURSTS if patient else FEWEST_BURSTS, 1)


def effort(pilot: Pilot, *, patient: bool = False, modest: bool = False) -> Effort:
    """Return the effort of an arm; a patient one takes as many bursts as any, to show that nothing differs.

    A modest one makes no more slow calls if these scatter.
    """
    warmup = min(calls_to_settle(pilot.calls_ns), MOST_WARMUP)
    if pilot.call_s >= SLOW_CALL_S:
        worth = 0 if modest else _worth_of_slow(pilot, warmup)
        return Effort(warmup, max(_slow_bursts(pilot.call_s), worth), 1)
    calls = min(math.ceil(BURST_S / pilot.call_s), MOST_IN_BURST)
    best = _best_bursts(pilot.open_s, _burst_s(pilot.call_s, calls), _scatter_of_bursts(pilot))
    # An even number of them: forth and back.
    bursts = 2 * math.ceil(best / 2)
    bursts = MOST_BURSTS if patient else min(max(bursts, FEWEST_BURSTS), MOST_BURSTS)
    return Effort(warmup, bursts, calls)


def align_efforts(
    efforts: Mapping[Key, Effort], call_s: Mapping[Key, float], least_calls: int = 0
) -> dict[Key, Effort]:
    """Let arms that are compared with each other do the same, however their pilots happened to scatter.

    Each warms up as long, and makes as many bursts, as the one that needs most. A quick arm makes at least
    `least_calls` calls in all of its bursts. A slow arm, each burst of which is one
    call, keeps its own effort: the arms compared with it are as slow, or far too quick for a few percent to matter.
    """
    quick = [key for key in sorted(efforts, key=lambda key: call_s[key]) if call_s[key] < SLOW_CALL_S]
    warmup = max((efforts[key].warmup for key in quick), default=0)
    bursts = max((efforts[key].bursts for key in quick), default=0)
    fewest = min(math.ceil(least_calls / bursts), MOST_IN_BURST) if quick else 0
    aligned = dict(efforts)
    calls, before_s = 0, 0.0
    for key in quick:
        # The quickest arm comes first and makes the most calls.
        own = max(efforts[key].calls, fewest)
        calls = max(calls, own) if call_s[key] <= before_s * ABOUT_AS_LONG else own
        aligned[key] = Effort(warmup, bursts, calls)
        before_s = call_s[key]
    return aligned


def replicate_s(pilot: Pilot, effort: Effort) -> float:
    """Estimate what one replicate of an arm takes."""
    return pilot.open_s + effort.warmup * pilot.call_s + effort.bursts * _burst_s(pilot.call_s, effort.calls)


def plan_once(open_s: float, visit_s: float) -> int:
    """Return how many visits of one call an early round adds if each takes this long, and a whole visit that long.

    It is planned from what visits cost, before any first call that counts was timed.
    """
    return min(FIRST_CALLS - 1, int(ONCE_SHARE * visit_s / open_s)) if open_s > 0 else 0


def error_of_bursts(pilot: Pilot) -> float:
    """Estimate the error that the scatter of its bursts leaves in the log time of a replicate."""
    return _scatter_of_bursts(pilot) / math.sqrt(max(len(pilot.bursts_ns), 1))


def _slow_bursts(call_s: float) -> int:
    return min(max(int(SLOW_BURSTS_S / call_s), FEWEST_SLOW_BURSTS), MOST_SLOW_BURSTS)


def _worth_of_slow(pilot: Pilot, warmup: int) -> int:
    """Return the best number of bursts of one slow call each, which together take no longer than opening does.

    Calls may have two speeds. The median of few would not see the rarer one, so all of them count.
    """
    burst_s = _burst_s(pilot.call_s, 1)
    scatter = float(np.std(np.log(np.maximum(np.array(pilot.calls_ns[warmup:] or pilot.calls_ns), 1))))
    return int(min(_best_bursts(pilot.open_s, burst_s, scatter), pilot.open_s / burst_s, MOST_BURSTS))


def _best_bursts(open_s: float, burst_s: float, scatter: float) -> float:
    """Return the best number of bursts by Kalibera and Jones.

    It grows with the scatter of bursts, and with the cost of opening another replicate.
    """
    return math.sqrt(open_s / burst_s) * scatter / BETWEEN


def _scatter_of_bursts(pilot: Pilot) -> float:
    return scatter([float(np.mean(burst)) for burst in pilot.bursts_ns if burst])


def _burst_s(call_s: float, calls: int) -> float:
    lead_in_s = 0.0 if call_s >= LONG_CALL_S else max(call_s, LEAD_IN_S)
    return lead_in_s + max(calls * call_s, call_s)


def calls_to_settle(calls_ns: Sequence[int]) -> int:
    """Return how many calls pass before three in a row are like the later half."""
    logs = np.log(np.maximum(np.array(calls_ns), 1))
    half = logs[len(logs) // 2 :]
    center = float(np.median(half))
    spread = MAD_TO_SIGMA * float(np.median(np.abs(half - center)))
    like = np.abs(logs - center) <= 3 * max(spread, 0.01)
    # Of few calls the first may have to be left out without any others.
    calm = min(CALM, max(len(logs) // 2, 1))
    for start in range(len(logs) - calm + 1):
        if like[start : start + calm].all():
            return start
    return len(logs)


def scatter(times: Sequence[float]) -> float:
    """Return the spread of the logs of these times; a single spike does not count."""
    logs = np.log(np.maximum(np.array(times), 1))
    return MAD_TO_SIGMA * float(np.median(np.abs(logs - np.median(logs))))


# Of the calls beyond a percentile, the share on either side of it that its density is read from.
BESIDE = 0.5


def count_calls(calls_ns: Sequence[int], percent: int, error: float) -> int:
    """Return how many calls give the log of a percentile this standard error, if the calls scatter like these.

    Calls that resemble each other, as in a moment in which another process is busy, are worth fewer.
    """
    share = percent / 100
    width = BESIDE * min(share, 1 - share)
    logs = np.log(np.maximum(np.array(calls_ns), 1))
    low, high = np.quantile(logs, (share - width, share + width))
    return math.ceil(share * (1 - share) * (float(high - low) / (2 * width * error)) ** 2)
