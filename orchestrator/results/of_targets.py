"""What a version has and not a case, such as the import of TensorFlow: its figures from all cases by round."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from orchestrator.metrics import METRICS
from orchestrator.metrics.spec import Values
from orchestrator.model import ArmKey, Replicate, Target


@dataclass(frozen=True)
class TargetRound:
    """What the workers of a version told in a round, by case; a worker that forked many replicates counts once."""

    by_case: Mapping[str, Values]

    def mean(self, cases: frozenset[str]) -> float:
        return fmean(dict.fromkeys(value for case in cases for value in self.by_case[case]))

    def __sub__(self, other: "TargetRound") -> float:
        """Compare two versions in the cases that both have, since cases of a merged run are of several machines."""
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


def find_import_ms(by_arm: Mapping[ArmKey, Sequence[Replicate]], target: Target) -> float | None:
    """Return how long the workers of a version took to import TensorFlow, whichever case they measured."""
    rounds = gather_rounds(by_arm, target, METRICS["import"].values).values()
    logs = [each.mean(frozenset(each.by_case)) for each in rounds]
    # Rounded, because logs do not keep the last digits.
    return round(math.exp(median(logs))) / 1e6 if logs else None
