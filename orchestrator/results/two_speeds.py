"""Recognises arms whose calls take one of two times at the same CPU time: the slow ones wait for something.

Each call is then a coin toss, which no round of few calls evens out. An epoch of `fit` is the usual case: it ends when
the thread that tunes its dataset wakes up.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.model import ArmKey, Load, Replicate
from orchestrator.terminal.counts import format_count

# A burst whose CPU time differs from the usual one by more than this is no evidence.
ALIKE = 0.15
FEWEST_BURSTS = 8
# Each of the two times has at least this share of the bursts, and the longer one is longer by at least this factor.
SHARE, APART = 0.1, 1.2
# At least this share of the replicates has bursts of both times. Replicates that differ as a whole have other causes.
BOTH = 0.25
# Other processes that use this much of a core make calls wait as well.
FOREIGN_CORES = 0.25


@dataclass(frozen=True)
class TwoSpeeds:
    """The two times of a call in milliseconds, and how many bursts took the longer one."""

    short_ms: float
    long_ms: float
    slow: int
    bursts: int


def find_two_speeds(replicates: Iterable[Replicate], loads: Iterable[Load]) -> Mapping[ArmKey, TwoSpeeds]:
    """Return the arms with two speeds in rounds in which nothing else used the machine."""
    crowded = {(case, load.round) for load in loads if load.foreign >= FOREIGN_CORES for case in load.cases}
    of_arms: dict[ArmKey, list[Replicate]] = defaultdict(list)
    for each in replicates:
        if (each.case, each.round) not in crowded:
            of_arms[each.arm].append(each)
    return {arm: found for arm, own in of_arms.items() if (found := _split(own))}


def _split(replicates: Sequence[Replicate]) -> TwoSpeeds | None:
    if sum(len(each.bursts) for each in replicates) < FEWEST_BURSTS:
        return None
    cpu, wall = (np.concatenate([getattr(each, name) for each in replicates]) for name in ("cpu_bursts", "bursts"))
    of_replicate = np.repeat(np.arange(len(replicates)), [len(each.bursts) for each in replicates])
    alike = abs(cpu - np.median(cpu)) <= ALIKE
    logs = np.sort(wall[alike])
    if len(logs) < FEWEST_BURSTS or logs[-1] - logs[0] < math.log(APART):
        return None
    fewest = max(2, round(SHARE * len(logs)))
    gaps = np.diff(logs)[fewest - 1 : len(logs) - fewest]
    cut = fewest + int(gaps.argmax())
    short, long = logs[:cut], logs[cut:]
    between = float(np.median(long) - np.median(short))
    if between < math.log(APART):
        return None
    spread = max(float(np.subtract(*np.quantile(part, (0.9, 0.1)))) for part in (short, long))
    # A scatter that is as wide as the gap is one speed with noise.
    if gaps.max() < spread:
        return None
    kinds = [set(of_replicate[alike & (wall >= long[0])]), set(of_replicate[alike & (wall <= short[-1])])]
    if len(kinds[0] & kinds[1]) < BOTH * len(kinds[0] | kinds[1]):
        return None
    return TwoSpeeds(float(np.exp(np.median(short))) / 1e6, float(np.exp(np.median(long))) / 1e6, len(long), len(logs))


def check_two_speeds(found: Mapping[ArmKey, TwoSpeeds]) -> list[str]:
    """Warn of arms with two speeds, naming the one whose times are farthest apart."""
    if not found:
        return []
    arm = max(found, key=lambda arm: found[arm].long_ms / found[arm].short_ms)
    each, more = found[arm], len(found) - 1
    others = f", and so do those of {format_count(more, 'other arm')}" if more else ""
    times = f"either about {each.short_ms:.3g} or {each.long_ms:.3g} ms at the same CPU time"
    slow = f"{each.slow} of {each.bursts} bursts are slow"
    return [
        f"the calls of {arm.case} in {arm.target} take {times} ({slow}){others}: "
        "they wait for something, not for a core; --judge cpu compares what they compute"
    ]
