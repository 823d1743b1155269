"""Recognises arms whose calls take one of two times at the same CPU time: the slow ones wait for something.

Each call is then a coin toss, which a round of few calls does not average out. In the usual case, an epoch of `fit`
waits at times until the thread that tunes its dataset wakes up. In the other case, threads share a core while another
idles. The kernel counts the time in which tasks wait for a core, and so tells the two apart.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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
# Replicates that lose more time in slow bursts are compared with those that lose less. At least this many are needed,
# and the share of their time that they lose has to differ by this much.
FEWEST_REPLICATES, DIFFERING = 4, 0.05
# If tasks wait for a core during more than this share of the lost time, that is the cause. During less than the rest,
# it is not. In between, it is unknown.
MOSTLY = 0.6
# Other processes that use this much of a core make calls wait as well.
FOREIGN_CORES = 0.25


Wait = Literal["core", "other", "unknown"]
# What the slow bursts wait for, and what helps.
WAITS: Mapping[Wait, str] = {
    "core": "they wait for a core; give each version more CPUs, or fewer --threads",
    "other": "they wait for something, not for a core",
    "unknown": "they wait for something",
}
UNTUNED = "an epoch of fit often waits for the thread that tunes its dataset, and --untuned-datasets switches that off"
BY_CPU = "--judge cpu compares CPU times"


@dataclass(frozen=True)
class TwoSpeeds:
    """The two times of a call in milliseconds, how many bursts took the longer one, and what these wait for."""

    short_ms: float
    long_ms: float
    slow: int
    bursts: int
    wait: Wait = "unknown"


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
    short_ns, long_ns = (float(np.exp(np.median(part))) for part in (short, long))
    wait = _find_wait(replicates, short_ns, float(long[0]))
    return TwoSpeeds(short_ns / 1e6, long_ns / 1e6, len(long), len(logs), wait)


def _find_wait(replicates: Sequence[Replicate], short_ns: float, slow_from: float) -> Wait:
    """Return what slow bursts wait for, according to the replicates that have few and many of them.

    Where they wait for a core, the time in which a task waited grows by as much as slow bursts cost. Threads of a pool
    wait for a core at all times, so what counts is the growth.
    """
    lost, waited = [], []
    for each in replicates:
        logs = np.array(each.bursts)
        # The stream of a stranger may have a replicate without bursts.
        if len(logs) and each.psi_us is not None and each.calls_ns > each.first_call_ns:
            lost.append(float((np.exp(logs[logs >= slow_from]) - short_ns).sum() / np.exp(logs).sum()))
            waited.append(each.psi_us * 1e3 / (each.calls_ns - each.first_call_ns))
    if len(lost) < FEWEST_REPLICATES or max(lost) - min(lost) < DIFFERING:
        return "unknown"
    (growth, _), errors = np.polyfit(lost, waited, 1, cov=True)
    error = 2 * math.sqrt(errors[0][0])
    return "core" if growth - error > MOSTLY else "other" if growth + error < 1 - MOSTLY else "unknown"


def check_two_speeds(found: Mapping[ArmKey, TwoSpeeds], *, tuned: bool) -> list[str]:
    """Warn of arms with two speeds, naming the one whose times are farthest apart; its datasets may be tuned."""
    if not found:
        return []
    arm = max(found, key=lambda arm: found[arm].long_ms / found[arm].short_ms)
    each, more = found[arm], len(found) - 1
    others = f", and so do those of {format_count(more, 'other arm')}" if more else ""
    times = f"either about {each.short_ms:.3g} or {each.long_ms:.3g} ms at the same CPU time"
    slow = f"{each.slow} of {each.bursts} bursts are slow"
    reasons = [WAITS[each.wait], *([UNTUNED] if tuned and each.wait != "core" else []), BY_CPU]
    return [f"the calls of {arm.case} in {arm.target} take {times} ({slow}){others}: {'; '.join(reasons)}"]
