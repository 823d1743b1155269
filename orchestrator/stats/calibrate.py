"""The amount of work that each arm does in a replicate, derived from a pilot of every arm.

An arm makes its calls in many short bursts that are spread over the visit. A busy neighbour slows all calls of a moment
alike, so the number of moments matters more than the number of calls. Each arm has its own number of calls per burst,
so that a quick arm is timed for as long as a slow one. Apart from that, arms that are compared with each other do the
same work, because calls still get quicker while a replicate is timed. All of this is fixed before the first round.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

MAD_TO_SIGMA = 1.4826
# A call counts as settled when it and the next two calls resemble the later half of all calls.
CALM = 3
MOST_WARMUP = 20
# Bursts are short, so that a busy neighbour slows all arms alike.
BURST_S = 0.008
# This limit keeps the readings of very short calls from filling a run's files. Only calls under five microseconds would
# need more, and these get no verdict.
MOST_IN_BURST = 1600
# A worker extends a burst that is too short, up to this many calls.
MOST_BY_ITSELF = 50
FEWEST_BURSTS, MOST_BURSTS = 8, 20
# A call this long is a burst by itself. As many bursts are made as fit into SLOW_BURSTS_S, within the limits below.
# More are made if the scatter of calls is the larger part of the error.
SLOW_CALL_S, SLOW_BURSTS_S = 0.1, 1.0
FEWEST_SLOW_BURSTS, MOST_SLOW_BURSTS = 3, 8
# Arms whose call times differ by at most this factor make the same number of calls per burst.
ABOUT_AS_LONG = 1.5
# The scatter of bursts is weighed against this assumed spread of an arm's replicates. A pilot has only one replicate,
# so it cannot measure that spread.
BETWEEN = 0.05
# An early round makes this many first calls of an arm, including that of the whole visit. The additional ones may take
# at most this share of the time of a whole visit. `bench/first_calls.py` shows what they improve.
FIRST_CALLS, ONCE_SHARE = 2, 0.7
# Before each burst a worker makes untimed calls: for LEAD_IN_S, and at least LEAD_IN_CALLS of them, but none once they
# have taken MOST_LEAD_IN_S. Calls of LONG_CALL_S need none.
LEAD_IN_S, LEAD_IN_CALLS, MOST_LEAD_IN_S, LONG_CALL_S = 0.005, 3, 0.03, 1.0


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
    """The amount of work that an arm does in a replicate.

    `warmup` is the number of calls after the second that are left out, and `calls` the number of calls per burst
    without its lead-in. `once` is how often an early round visits the arm again for its first call alone.
    """

    warmup: int
    bursts: int
    calls: int
    once: int = 0


# A program is run once in each visit: it builds, warms up and makes its calls by itself.
ONCE = Effort(0, 1, 1)


def first_effort(second_s: float, *, patient: bool = False) -> Effort:
    """Return the effort of a pilot of which only the second call is known: the smallest for a call of that time."""
    if second_s >= SLOW_CALL_S:
        return Effort(0, _slow_bursts(second_s), 1)
    return Effort(0, MOST_BURSTS if patient else FEWEST_BURSTS, 1)


def effort(pilot: Pilot, *, patient: bool = False, modest: bool = False, least_burst_s: float = 0.0) -> Effort:
    """Return the effort of an arm, whose bursts last for at least a given time.

    With `patient`, it has the largest number of bursts, which it takes to show that nothing differs. With `modest`,
    slow calls that scatter do not get more bursts.
    """
    warmup = min(calls_to_settle(pilot.calls_ns), MOST_WARMUP)
    if pilot.call_s >= SLOW_CALL_S:
        worth = 0 if modest else _worth_of_slow(pilot, warmup)
        return Effort(warmup, max(_slow_bursts(pilot.call_s), worth), max(1, math.ceil(least_burst_s / pilot.call_s)))
    calls = min(math.ceil(max(BURST_S, least_burst_s) / pilot.call_s), MOST_IN_BURST)
    best = _best_bursts(pilot.open_s, _burst_s(pilot.call_s, calls), _scatter_of_bursts(pilot))
    bursts = MOST_BURSTS if patient else min(max(math.ceil(best), FEWEST_BURSTS), MOST_BURSTS)
    return Effort(warmup, bursts, calls)


def align_efforts(
    efforts: Mapping[Key, Effort], call_s: Mapping[Key, float], least_calls: int = 0
) -> dict[Key, Effort]:
    """Give arms that are compared with each other the same work, regardless of how their pilots scattered.

    Every quick arm gets the longest warm-up and the most bursts that any of them needs, and makes at least
    `least_calls` calls in all of its bursts together. A slow arm, each burst of which is one call, keeps its own
    effort: the arms compared with it are as slow, or far too quick for a few percent to matter.
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
    """Estimate how long one replicate of an arm takes."""
    return pilot.open_s + effort.warmup * pilot.call_s + effort.bursts * _burst_s(pilot.call_s, effort.calls)


def plan_once(open_s: float, visit_s: float) -> int:
    """Return how many single-call visits an early round adds, given the times of such a visit and of a whole visit.

    The number depends only on these times. It is fixed before any first call that counts is timed.
    """
    return min(FIRST_CALLS - 1, int(ONCE_SHARE * visit_s / open_s)) if open_s > 0 else 0


def error_of_bursts(pilot: Pilot) -> float:
    """Estimate the error in the log time of a replicate that is due to the scatter of its bursts."""
    return _scatter_of_bursts(pilot) / math.sqrt(max(len(pilot.bursts_ns), 1))


def _slow_bursts(call_s: float) -> int:
    return min(max(int(SLOW_BURSTS_S / call_s), FEWEST_SLOW_BURSTS), MOST_SLOW_BURSTS)


def _worth_of_slow(pilot: Pilot, warmup: int) -> int:
    """Return the best number of bursts of one slow call each, which together take no longer than opening does.

    Calls may have two speeds, and a median of few calls would miss the rarer one. So the scatter is that of all calls.
    """
    burst_s = _burst_s(pilot.call_s, 1)
    scatter = float(np.std(np.log(np.maximum(np.array(pilot.calls_ns[warmup:] or pilot.calls_ns), 1))))
    return int(min(_best_bursts(pilot.open_s, burst_s, scatter), pilot.open_s / burst_s, MOST_BURSTS))


def _best_bursts(open_s: float, burst_s: float, scatter: float) -> float:
    """Return the best number of bursts according to Kalibera and Jones.

    It grows with the scatter of bursts, and with the cost of opening another replicate.
    """
    return math.sqrt(open_s / burst_s) * scatter / BETWEEN


def _scatter_of_bursts(pilot: Pilot) -> float:
    return scatter([float(np.mean(burst)) for burst in pilot.bursts_ns if burst])


def _burst_s(call_s: float, calls: int) -> float:
    lead_in = max(LEAD_IN_CALLS, math.ceil(LEAD_IN_S / call_s))
    lead_in = 0 if call_s >= LONG_CALL_S else min(lead_in, math.ceil(MOST_LEAD_IN_S / call_s))
    return (lead_in + max(calls, 1)) * call_s


def calls_to_settle(calls_ns: Sequence[int]) -> int:
    """Return how many calls pass before three in a row resemble the later half."""
    logs = np.log(np.maximum(np.array(calls_ns), 1))
    half = logs[len(logs) // 2 :]
    center = float(np.median(half))
    spread = MAD_TO_SIGMA * float(np.median(np.abs(half - center)))
    like = np.abs(logs - center) <= 3 * max(spread, 0.01)
    # Fewer in a row suffice if there are few calls, so that the first one alone can be left out.
    calm = min(CALM, max(len(logs) // 2, 1))
    for start in range(len(logs) - calm + 1):
        if like[start : start + calm].all():
            return start
    return len(logs)


def scatter(times: Sequence[float]) -> float:
    """Return the spread of the logs of these times; a single spike does not count."""
    logs = np.log(np.maximum(np.array(times), 1))
    return MAD_TO_SIGMA * float(np.median(np.abs(logs - np.median(logs))))


# The density at a percentile is estimated from a window around it, which reaches this share of the way to the nearer
# end of the distribution.
BESIDE = 0.5


def count_calls(calls_ns: Sequence[int], percent: int, error: float) -> int:
    """Return how many calls give the log of a percentile this standard error, if the calls scatter like these.

    Calls that resemble each other, for example while another process is busy, count as fewer independent ones.
    """
    share = percent / 100
    width = BESIDE * min(share, 1 - share)
    logs = np.log(np.maximum(np.array(calls_ns), 1))
    low, high = np.quantile(logs, (share - width, share + width))
    return math.ceil(share * (1 - share) * (float(high - low) / (2 * width * error)) ** 2)
