"""Selects and orders the arms and comparisons that are shown."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError
from orchestrator.model import ArmKey, ArmResult, Comparison, Evaluation
from orchestrator.reports.summary import by_candidate

T = TypeVar("T")

# A comparison that is `slight` is also `same`.
KINDS = ("slower", "faster", "same", "slight", "inconclusive", "refused", "died", "postponed", "not measured")
SORTS = ("case", "name", "ratio", "time")


@dataclass(frozen=True)
class Arrangement:
    """A selection and order of what is shown.

    `only` are verdicts and outcomes; without any, all are shown. `sort` orders workloads, and cases inside them.
    """

    only: tuple[str, ...] = ()
    sort: str = "case"
    backwards: bool = False

    def arms(self, evaluation: Evaluation) -> list[ArmResult]:
        """Return the arms to show, each together with its case's baseline, without which it could not be read."""
        comparisons = by_candidate(evaluation.comparisons)
        chosen = {
            arm.key
            for arm in evaluation.arms
            if not self.only or arm.outcome in self.only or self._selects(comparisons.get(arm.key))
        }
        cases = {label for label, _ in chosen}
        baseline = evaluation.plan.targets[0]
        selected = [
            arm for arm in evaluation.arms if arm.key in chosen or (arm.target == baseline and arm.case.label in cases)
        ]
        return self._sort_groups(
            selected, lambda arm: arm.case.workload, lambda arm: arm.case.label, self._key(comparisons)
        )

    def inside(self, evaluation: Evaluation) -> list[Comparison]:
        """Return the comparisons between cases of one version that are to be shown."""
        selected = [
            comparison
            for comparison in evaluation.comparisons
            if comparison.pair.kind == "case"
            and comparison.pair.metric == "time"
            and (not self.only or self._selects(comparison))
        ]
        if self.sort not in ("name", "ratio"):
            return selected
        return self._sort_groups(
            selected,
            lambda comparison: comparison.pair.workload,
            lambda comparison: f"{comparison.pair.arms[1].case} {comparison.pair.arms[0].case}",
            lambda comparison: comparison.pair.arms[1].case if self.sort == "name" else -_log(comparison),
        )

    def _selects(self, comparison: Comparison | None) -> bool:
        return comparison is not None and not {comparison.verdict, comparison.size}.isdisjoint(self.only)

    def _key(self, comparisons: dict[ArmKey, Comparison]) -> Callable[[ArmResult], Any]:
        """Return the sort key of an arm.

        The key of a group is the smallest key of its arms. The worst come first, so that is the key of the slowest.
        """
        if self.sort == "time":
            return lambda arm: -(arm.time_ms or 0.0)
        if self.sort == "ratio":
            return lambda arm: -_log(comparisons.get(arm.key))
        return lambda arm: arm.case.label

    def _sort_groups(
        self, items: Sequence[T], outer: Callable[[T], str], inner: Callable[[T], str], key: Callable[[T], Any]
    ) -> list[T]:
        """Sort items so that groups stay together.

        Groups with the smallest key come first, and so do the groups inside them.
        """
        if self.sort == "case":
            return list(reverse_groups(items, inner)) if self.backwards else list(items)
        outers, inners = _least(items, outer, key), _least(items, inner, key)
        grouped = sorted(items, key=lambda item: (outers[outer(item)], outer(item), inners[inner(item)], inner(item)))
        return list(reverse_groups(grouped, inner)) if self.backwards else grouped


def reverse_groups(items: Sequence[T], group: Callable[[T], str]) -> Iterable[T]:
    """Yield the groups in reverse order, each unchanged inside.

    A baseline thus stays above what is compared with it.
    """
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(group(item), []).append(item)
    for own in reversed(groups.values()):
        yield from own


def arrangement(only: str | None, sort: str | None) -> Arrangement:
    """Check the flags, and return how to show a run."""
    kinds = tuple(name.strip() for name in only.split(",")) if only else ()
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"--only {kind!r}{did_you_mean(kind, KINDS)}; choose from {', '.join(KINDS)}")
    name = (sort or "case").removeprefix("-")
    if name not in SORTS:
        raise UsageError(
            f"--sort {name!r}{did_you_mean(name, SORTS)}; choose from {', '.join(SORTS)}, or reverse one, e.g. -ratio"
        )
    return Arrangement(kinds, name, (sort or "").startswith("-"))


def _log(comparison: Comparison | None) -> float:
    return math.log(comparison.ratio) if comparison and comparison.ratio else -math.inf


def _least(items: Iterable[T], group: Callable[[T], str], key: Callable[[T], Any]) -> dict[str, Any]:
    least: dict[str, Any] = {}
    for item in items:
        name, value = group(item), key(item)
        least[name] = min(least[name], value) if name in least else value
    return least
