"""Made-up histories of a time: what each version takes, which versions cannot be measured, and what a run would say."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from orchestrator.bisect.search import BisectFinding, PlannedStep, SearchResult, search
from orchestrator.model import VerdictName

MARGIN = 0.05


def versions(count: int) -> tuple[str, ...]:
    return tuple(f"{number}.0.0" for number in range(1, count + 1))


@dataclass
class World:
    """`logs` is the log time of each version; `noise` the half width of an interval, of a thorough run another."""

    logs: Mapping[str, float]
    skipped: frozenset[str] = frozenset()
    noise: float = 0.01
    thorough_noise: float = 0.005
    blind: Callable[[PlannedStep, tuple[str, str]], bool] = lambda wanted, pair: False
    asked: list[PlannedStep] = field(default_factory=list)

    def finding(self, wanted: PlannedStep, pair: tuple[str, str]) -> BisectFinding:
        theta = self.logs[pair[1]] - self.logs[pair[0]]
        half = self.thorough_noise if wanted.thorough else self.noise
        if self.blind(wanted, pair):
            half = 10.0
        return finding(*pair, theta, half, thorough=wanted.thorough)

    def measure(self, wanted: PlannedStep) -> tuple[list[BisectFinding], set[str]]:
        self.asked.append(wanted)
        if len(wanted.versions) > 2 and wanted.versions[1] in self.skipped:
            return [], {wanted.versions[1]}
        return [self.finding(wanted, pair) for pair in wanted.pairs], set()


def finding(earlier: str, later: str, theta: float, half: float = 0.01, *, thorough: bool = False) -> BisectFinding:
    return BisectFinding(
        earlier=earlier,
        later=later,
        verdict=verdict_of(theta, half),
        ratio=math.exp(theta),
        ci_low=math.exp(theta - half),
        ci_high=math.exp(theta + half),
        rounds=6,
        thorough=thorough,
    )


def verdict_of(theta: float, half: float) -> VerdictName:
    bound = math.log1p(MARGIN)
    if abs(theta) + half < bound:
        return "same"
    if abs(theta) - half > 0 and abs(theta) >= bound:
        return "slower" if theta > 0 else "faster"
    return "inconclusive"


def stepped(candidates: Sequence[str], steps: Mapping[int, float], **changes: object) -> World:
    """`steps` are the changes that versions come with, by their places."""
    logs, level = {}, 0.0
    for place, version in enumerate(candidates):
        level += steps.get(place, 0.0)
        logs[version] = level
    return World(logs, **changes)


def solved(world: World, candidates: Sequence[str], *, every: bool = False, most: int = 200) -> SearchResult:
    findings: list[BisectFinding] = []
    skipped: set[str] = set()
    for _ in range(most):
        found = search(candidates, findings, skipped, MARGIN, every=every)
        check_way(found, candidates)
        if not found.wanted:
            return found
        learned, lost = world.measure(found.wanted[0])
        findings += learned
        skipped |= lost
    raise AssertionError(f"no end after {most} steps")


def check_way(found: SearchResult, candidates: Sequence[str]) -> None:
    """Whatever is known: the parts follow each other from one end to the other."""
    assert found.parts[0].earlier == candidates[0]
    assert found.parts[-1].later == candidates[-1]
    assert all(before.later == after.earlier for before, after in pairwise(found.parts))


def changes(found: SearchResult) -> dict[tuple[str, str], str]:
    """The neighbours that are told to differ, with their verdicts."""
    return {
        (part.earlier, part.later): part.finding.verdict
        for part in found.parts
        if part.kind == "change" and part.finding is not None
    }
