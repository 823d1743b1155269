"""Decides where between two versions a time changed: what to measure next, and what to conclude. Pure.

An interval is two versions whose ratio has been measured by a run. If its ends differ it is split: a run measures its
two ends and a version between them. So every change on the path is followed, and several may be found. Everything
follows from what is known so far, in whatever order it became known, which makes a search resumable.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from orchestrator.metrics.followed import TIME, Followed, describe_change
from orchestrator.model import STRICT, Magnitude, VerdictName

# A split tries the middle of an interval, and its neighbours if the middle does not show on which side the change is.
MOST_MIDDLES = 3
# A change smaller than this share of the overall change is not worth more rounds.
WORTH = 0.1
# A change with at least this share of the overall change is the one that was looked for.
MAIN = 0.5

StepKind = Literal["ends", "split", "beside", "again"]
PartKind = Literal["change", "spread", "between", "same", "unclear", "open"]


@dataclass(frozen=True, kw_only=True)
class BisectFinding(Magnitude):
    """The comparison of a later version with an earlier version in a run.

    `thorough` marks a run with more rounds. A version that exceeded its deadline is slow, but its ratio is unknown.
    """

    __pydantic_config__ = STRICT

    earlier: str
    later: str
    rounds: int = 0
    thorough: bool = False
    metric: Followed = TIME

    @property
    def words(self) -> str:
        """The verdict in the words of what is compared."""
        return describe_change(self.metric, self.shown_verdict)

    @property
    def changed(self) -> bool:
        return self.verdict in ("slower", "faster")

    @property
    def distance(self) -> float:
        """How far the versions are from no difference; a change without a figure counts as the largest."""
        if self.estimate is None:
            return math.inf if self.changed else 0.0
        return abs(self.estimate)

    @property
    def most(self) -> float:
        """The largest distance that the interval allows."""
        return math.inf if self.ends is None else max(map(abs, self.ends))


@dataclass(frozen=True)
class PlannedStep:
    """Versions to be measured side by side, earliest first.

    They are the two ends of an interval and, if it is to be split, one version between them. `of` is what is known
    about the interval.
    """

    kind: StepKind
    versions: tuple[str, ...]
    of: BisectFinding | None = None
    inside: int = 0

    @property
    def thorough(self) -> bool:
        return self.kind == "again"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.versions, self.versions[1:], strict=False))

    @property
    def stakes(self) -> float:
        """The priority of this measurement: whatever explains most is followed first."""
        return math.inf if self.of is None else self.of.distance


@dataclass(frozen=True)
class PathPart:
    """A piece of the path, from one version to a later one; the pieces of a search follow each other.

    change   its ends differ, and nothing between them can be measured
    spread   its ends differ, but neither of its halves does: several versions changed a little each
    between  its ends differ, and the versions between them do not show where
    same, unclear   its ends do not differ, or this is undecided; the versions between them were not visited
    open     not followed to its end yet
    """

    earlier: str
    later: str
    kind: PartKind
    finding: BisectFinding | None
    inside: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.finding is not None and self.finding.changed

    @property
    def distance(self) -> float:
        return self.finding.distance if self.finding else 0.0


@dataclass(frozen=True)
class SearchResult:
    """The results so far; `wanted` lists the next measurements, most informative first."""

    overall: BisectFinding | None
    parts: tuple[PathPart, ...]
    wanted: tuple[PlannedStep, ...]

    @property
    def main(self) -> PathPart | None:
        """The two neighbours that account for most of the whole change, once they are known."""
        if self.overall is None or not self.overall.changed:
            return None
        found = [part for part in self.parts if part.kind == "change" and part.finding]
        found = [part for part in found if part.finding and part.finding.verdict == self.overall.verdict]
        largest = max(found, key=lambda part: part.distance, default=None)
        return largest if largest and largest.distance >= MAIN * self.overall.distance else None

    @property
    def narrowest(self) -> PathPart | None:
        """The part of the path that the largest change is in, as far as it is known."""
        return max((part for part in self.parts if part.changed), key=lambda part: part.distance, default=None)


def search(
    candidates: Sequence[str],
    findings: Iterable[BisectFinding],
    skipped: Collection[str],
    least: float,
    *,
    every: bool = False,
) -> SearchResult:
    """Return the results so far, and what to measure next.

    `candidates` are in order, including the ends. `skipped` are those that cannot be measured. A change of less than
    `least`, on the scale of the metric, takes no more rounds. With `every`, each is visited, whether the ends of its
    interval differ or not.
    """
    by_pair = latest(findings)
    overall = by_pair.get((candidates[0], candidates[-1]))
    size = overall.distance if overall and math.isfinite(overall.distance) else 0.0
    walk = _Walk(candidates, by_pair, skipped, max(least, WORTH * size), every)
    parts = walk.parts(0, len(candidates) - 1)
    return SearchResult(overall, tuple(parts), tuple(sorted(walk.wanted, key=lambda step: -step.stakes)))


def latest(findings: Iterable[BisectFinding]) -> dict[tuple[str, str], BisectFinding]:
    """Return the last finding of each pair, preferring those with more rounds."""
    by_pair: dict[tuple[str, str], BisectFinding] = {}
    for finding in findings:
        pair = finding.earlier, finding.later
        if pair not in by_pair or finding.thorough or not by_pair[pair].thorough:
            by_pair[pair] = finding
    return by_pair


@dataclass
class _Walk:
    candidates: Sequence[str]
    by_pair: Mapping[tuple[str, str], BisectFinding]
    skipped: Collection[str]
    worth: float
    every: bool
    wanted: list[PlannedStep] = field(default_factory=list)

    def parts(self, first: int, last: int) -> list[PathPart]:
        ends = self.candidates[first], self.candidates[last]
        finding = self.by_pair.get(ends)
        if finding is None:
            return self._open(first, last, PlannedStep("ends", ends))
        matters = (first, last) == (0, len(self.candidates) - 1) or finding.most > self.worth
        if finding.verdict == "inconclusive" and not finding.thorough and matters:
            return self._open(first, last, PlannedStep("again", ends, finding))
        inside = [index for index in range(first + 1, last) if self.candidates[index] not in self.skipped]
        if inside and (finding.changed or self.every):
            return self._split(first, last, inside, finding)
        kind: PartKind = "same" if finding.verdict == "same" else "change" if finding.changed else "unclear"
        return [self._part(first, last, kind)]

    def _split(self, first: int, last: int, inside: Sequence[int], finding: BisectFinding) -> list[PathPart]:
        earlier, later = self.candidates[first], self.candidates[last]
        for attempt, index in enumerate(self._middles(first, last, inside)):
            middle = self.candidates[index]
            halves = self.by_pair.get((earlier, middle)), self.by_pair.get((middle, later))
            if halves[0] is None or halves[1] is None:
                kind: StepKind = "beside" if attempt else "split"
                return self._open(first, last, PlannedStep(kind, (earlier, middle, later), finding, len(inside)))
            before = len(self.wanted)
            parts = [*self.parts(first, index), *self.parts(index, last)]
            located = any(half is not None and half.changed for half in halves)
            if located or self.every or len(self.wanted) > before:
                return parts
            if all(half is not None and half.verdict == "same" for half in halves):
                return [self._part(first, last, "spread")]
        return [self._part(first, last, "between")]

    def _middles(self, first: int, last: int, inside: Sequence[int]) -> list[int]:
        """Return the positions at which to split an interval, those already measured first.

        A version that cannot be measured moves the middle, and that must not cause known results to be measured again.
        """
        earlier, later = self.candidates[first], self.candidates[last]

        def key(index: int) -> tuple[bool, int, int]:
            middle = self.candidates[index]
            measured = (earlier, middle) in self.by_pair and (middle, later) in self.by_pair
            return not measured, abs(2 * inside.index(index) + 1 - len(inside)), index

        return sorted(inside, key=key)[:MOST_MIDDLES]

    def _open(self, first: int, last: int, wanted: PlannedStep) -> list[PathPart]:
        self.wanted.append(wanted)
        return [self._part(first, last, "open")]

    def _part(self, first: int, last: int, kind: PartKind) -> PathPart:
        ends = self.candidates[first], self.candidates[last]
        return PathPart(*ends, kind, self.by_pair.get(ends), tuple(self.candidates[first + 1 : last]))


def swap_versions(finding: BisectFinding) -> BisectFinding:
    """Return the same finding with its two versions swapped."""
    verdicts: dict[VerdictName, VerdictName] = {"slower": "faster", "faster": "slower"}
    return replace(
        finding,
        earlier=finding.later,
        later=finding.earlier,
        verdict=verdicts.get(finding.verdict, finding.verdict),
        ratio=finding.ratio and 1 / finding.ratio,
        ci_low=finding.ci_high and 1 / finding.ci_high,
        ci_high=finding.ci_low and 1 / finding.ci_low,
        difference=_negate(finding.difference),
        difference_low=_negate(finding.difference_high),
        difference_high=_negate(finding.difference_low),
    )


def _negate(amount: float | None) -> float | None:
    return None if amount is None else -amount
