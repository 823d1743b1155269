"""The samples for verdicts: the figures of each arm by round, from the replicates that count for a metric.

A metric of a version rather than a case, such as the import of TensorFlow, takes its figures from all cases of a round.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from statistics import fmean, median
from typing import TypeVar

from orchestrator.metrics import METRICS
from orchestrator.metrics.spec import Values
from orchestrator.model import ArmKey, Metric, Plan, Replicate, Target
from orchestrator.stats.comparisons import Samples
from orchestrator.stats.round_times import RoundTimes, Sample, group_visits

K = TypeVar("K")
V = TypeVar("V")

# The rounds of this many arms are kept. Those of further arms are made again whenever they are needed.
MOST_KEPT = 20_000


@dataclass(frozen=True)
class TargetRound:
    """The figures that a version's workers stated in a round, by case; a worker with many replicates counts once."""

    by_case: Mapping[str, Values]

    def mean(self, cases: frozenset[str]) -> float:
        return fmean(dict.fromkeys(value for case in cases for value in self.by_case[case]))

    def __sub__(self, other: "TargetRound") -> float:
        """Compare two versions in the cases that both have, because several machines may have measured a merged run."""
        common = frozenset(self.by_case.keys() & other.by_case.keys())
        return self.mean(common or frozenset(self.by_case)) - other.mean(common or frozenset(other.by_case))


def gather_rounds(
    by_arm: Mapping[ArmKey, Sequence[Replicate]], target: Target, values: Callable[[Replicate], Values]
) -> dict[int, TargetRound]:
    rounds: dict[int, dict[str, Values]] = defaultdict(dict)
    for arm, replicates in by_arm.items():
        for replicate in replicates if arm.target == target else ():
            if figures := values(replicate):
                own = rounds[replicate.round]
                own[arm.case] = (*own.get(arm.case, ()), *figures)
    return {number: TargetRound(by_case) for number, by_case in sorted(rounds.items())}


@dataclass(frozen=True)
class ByArm:
    """The replicates of each arm that give its figures, and those that give the times of its build and first call."""

    replicates: Mapping[ArmKey, Sequence[Replicate]]
    openings: Mapping[ArmKey, Sequence[Replicate]]

    @classmethod
    def of(cls, replicates: Iterable[Replicate], openings: Iterable[Replicate] | None = None) -> "ByArm":
        """Group replicates by arm; if `openings` is not given, their own builds and first calls count."""
        whole = group_by_arm(replicates)
        return cls(whole, whole if openings is None else group_by_arm(openings))

    def samples(self, plan: Plan) -> Samples:
        metrics = {pair.metric for pair in plan.pairs}
        keys = [(*name, metric) for name in self.replicates for metric in metrics]
        return LazyMapping(keys, lambda key: self._kept(ArmKey(*key[:2]), key[2]))

    @cached_property
    def _kept(self) -> Callable[[ArmKey, Metric], Mapping[int, Sample]]:
        """Return the samples of an arm. All that is asked for samples shares those that were made last."""
        return lru_cache(MOST_KEPT)(self._by_round)

    def _by_round(self, arm: ArmKey, metric: Metric) -> Mapping[int, Sample]:
        spec = METRICS[metric]
        if spec.of_targets:
            return gather_rounds(self.replicates, arm.target, spec.values)
        return _by_round((self.openings if spec.of_openings else self.replicates)[arm], spec.values)

    def figures(self, values: Callable[[Replicate], Values]) -> Mapping[ArmKey, Mapping[int, RoundTimes]]:
        """Return another figure of each arm, by round."""
        make = lru_cache(MOST_KEPT)(lambda arm: _by_round(self.replicates[arm], values))
        return LazyMapping(self.replicates, make)


def samples(plan: Plan, replicates: Iterable[Replicate], openings: Iterable[Replicate] | None = None) -> Samples:
    """Return the samples from which verdicts are made."""
    return ByArm.of(replicates, openings).samples(plan)


def group_by_arm(replicates: Iterable[Replicate]) -> dict[ArmKey, list[Replicate]]:
    by_arm: dict[ArmKey, list[Replicate]] = defaultdict(list)
    for replicate in replicates:
        by_arm[replicate.arm].append(replicate)
    return by_arm


class LazyMapping(Mapping[K, V]):
    """A mapping that makes a value on demand."""

    def __init__(self, keys: Iterable[K], make: Callable[[K], V]) -> None:
        self._keys = dict.fromkeys(keys)
        self._make = make

    def __getitem__(self, key: K) -> V:
        if key not in self._keys:
            raise KeyError(key)
        return self._make(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _by_round(replicates: Iterable[Replicate], values: Callable[[Replicate], Values]) -> Mapping[int, RoundTimes]:
    return group_visits(
        (replicate.round, figures, replicate.sitting)
        for replicate in sorted(replicates, key=attrgetter("number"))
        if (figures := values(replicate))
    )


def find_import_ms(by_arm: Mapping[ArmKey, Sequence[Replicate]], target: Target) -> float | None:
    """Return how long the workers of a version took to import TensorFlow, whichever case they measured."""
    rounds = gather_rounds(by_arm, target, METRICS["import"].values).values()
    logs = [each.mean(frozenset(each.by_case)) for each in rounds]
    # The result is rounded, because logs do not keep the last digits.
    return round(math.exp(median(logs))) / 1e6 if logs else None
