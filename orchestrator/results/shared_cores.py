"""Recognises bursts in which the busy threads of an arm took turns on one core while they could have had two.

Their calls take up to twice as long as others at the same CPU time, so no more rounds of an arm agree on its time.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.model import ArmKey
from orchestrator.results.replicates import Replicate
from orchestrator.terminal.counts import format_count

# An arm keeps more than one core busy if its quickest bursts take this much CPU time, per wall time.
PARALLEL, QUICKEST = 1.4, 0.9
# One core at a time, within the error of both clocks. Less is a core that something else took.
FEWEST_CORES, MOST_CORES = 0.9, 1.15
# By so much may the CPU time of such a burst differ from what is usual: a burst that has more to do is no evidence.
ALIKE = 0.15
FEWEST_BURSTS = 8
# From this share of the bursts on, a mean of few is a matter of chance.
TOLD = 0.1


@dataclass(frozen=True)
class SharedCore:
    """How many bursts of an arm had one core although the arm can use two, of how many, and what they cost."""

    shared: int
    bursts: int
    slowdown: float


def find_shared_cores(replicates: Iterable[Replicate]) -> Mapping[ArmKey, SharedCore]:
    """Return what was found of each arm that keeps more than one core busy, where wall times are judged."""
    of_arms: dict[ArmKey, list[Replicate]] = defaultdict(list)
    for each in replicates:
        of_arms[each.arm].append(each)
    return {arm: found for arm, own in of_arms.items() if (found := _of_arm(own))}


def _of_arm(replicates: Sequence[Replicate]) -> SharedCore | None:
    wall = np.concatenate([each.bursts for each in replicates])
    cpu = np.concatenate([each.cpu_bursts for each in replicates])
    cores = np.exp(cpu - wall)
    if len(cores) < FEWEST_BURSTS or not np.quantile(cores, QUICKEST) >= PARALLEL:
        return None
    alike = abs(cpu - np.median(cpu)) <= ALIKE
    shared = alike & (cores >= FEWEST_CORES) & (cores <= MOST_CORES)
    apart = alike & (cores >= PARALLEL)
    slowdown = float(np.exp(wall[shared].mean() - wall[apart].mean())) if shared.any() and apart.any() else 1.0
    return SharedCore(int(shared.sum()), len(cores), slowdown)


def check_shared_cores(found: Mapping[ArmKey, SharedCore]) -> list[str]:
    """Warn of arms whose threads often shared a core."""
    often = {arm: each for arm, each in found.items() if each.shared > TOLD * each.bursts}
    if not often:
        return []
    worst = max(often, key=lambda arm: often[arm].shared / often[arm].bursts)
    each = often[worst]
    return [
        f"the threads of {format_count(len(often), 'arm')} shared a core at times while another was free: those of "
        f"{worst.case} in {worst.version} in {each.shared} of {each.bursts} bursts, which then took "
        f"{each.slowdown:.2f} times as long; CPU time does not depend on it (--judge cpu)"
    ]
