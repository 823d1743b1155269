"""A ladder of targets from the old one to the new one, and what its rungs explain. Pure.

Two neighbours on a ladder differ in one cause or in a group of causes. On the lowest rung, they differ in TensorFlow
and in what cannot be separated from it. A group that matters is split by another ladder, between its two targets.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestrator.bisect.search import BisectFinding
from orchestrator.model import STRICT
from orchestrator.terminal.counts import name_some

# A ladder has at most this many rungs: more targets take longer, and fewer take more ladders.
MOST_RUNGS = 4
# A rung with less than this share of the largest change is not followed.
WORTH = 0.2
# A title of a group names this many of its causes.
MOST_TITLES = 2


@dataclass(frozen=True, kw_only=True)
class Rung:
    """What two neighbours on a ladder differ in. `rest` describes what has no cause, such as TensorFlow itself."""

    __pydantic_config__ = STRICT

    causes: tuple[str, ...]
    rest: str = ""

    @property
    def title(self) -> str:
        titles = (*([self.rest] if self.rest else []), *self.causes)
        return name_some(titles, MOST_TITLES, "change") if titles else "nothing that is known"

    @property
    def is_divisible(self) -> bool:
        return len(self.causes) + bool(self.rest) > 1 and bool(self.causes)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Targets from the old one to the new one, each as its text and its name, and the rungs between them."""

    __pydantic_config__ = STRICT

    texts: tuple[str, ...]
    names: tuple[str, ...]
    rungs: tuple[Rung, ...]

    def without(self, name: str) -> "Ladder":
        """Return the ladder without one of its inner targets, whose two rungs become one."""
        at = self.names.index(name)
        below, above = self.rungs[at - 1], self.rungs[at]
        joined = Rung(causes=(*below.causes, *above.causes), rest=", ".join(filter(None, (below.rest, above.rest))))
        return replace(
            self,
            texts=(*self.texts[:at], *self.texts[at + 1 :]),
            names=(*self.names[:at], *self.names[at + 1 :]),
            rungs=(*self.rungs[: at - 1], joined, *self.rungs[at + 1 :]),
        )


@dataclass(frozen=True, kw_only=True)
class JudgedRung:
    """A rung with the finding about it, or the target on which the case cannot be measured although it can below."""

    rung: Rung
    lower: str
    upper: str
    # The number of the ladder that measured it.
    ladder: int
    finding: BisectFinding | None = None
    death: str = ""

    @property
    def changed(self) -> bool:
        return bool(self.death) or (self.finding is not None and self.finding.changed)

    @property
    def distance(self) -> float:
        return math.inf if self.death else self.finding.distance if self.finding else 0.0


@dataclass(frozen=True, kw_only=True)
class MeasuredLadder:
    """A ladder, the findings about each two of its targets, and why some of them cannot be measured."""

    ladder: Ladder
    findings: Mapping[tuple[str, str], BisectFinding]
    deaths: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What is known of a difference: the whole, and the rungs that are left once groups were split."""

    whole: BisectFinding | None
    rungs: tuple[JudgedRung, ...]
    # The whole cannot be measured because of this end, and this is why.
    death: str = ""

    @property
    def mattering(self) -> tuple[JudgedRung, ...]:
        """The rungs that are shown to matter, the largest first."""
        largest = max((each.distance for each in (*self.rungs, self.whole) if each), default=0.0)
        found = [each for each in self.rungs if each.changed and (each.death or each.distance >= WORTH * largest)]
        return tuple(sorted(found, key=lambda each: -each.distance))

    @property
    def product(self) -> float | None:
        """The rungs joined on the scale of the metric, or None if one of them has no figure."""
        estimates = [each.finding.estimate if each.finding else None for each in self.rungs]
        known = [estimate for estimate in estimates if estimate is not None]
        return sum(known) if known and len(known) == len(estimates) else None

    def share(self, rung: JudgedRung) -> float | None:
        """Return the part of the whole change that a rung has; it is negative if the rung takes some of it back."""
        if self.whole is None or not self.whole.changed or not self.whole.estimate:
            return None
        estimate = rung.finding.estimate if rung.finding else None
        return None if estimate is None else estimate / self.whole.estimate


def group_causes(kinds: Sequence[Sequence[str]], most: int) -> tuple[tuple[str, ...], ...]:
    """Return causes in at most this many groups, in order: small kinds share a group, and a large group is divided."""
    groups = [tuple(kind) for kind in kinds if kind]
    while len(groups) > most:
        at = min(range(len(groups) - 1), key=lambda index: len(groups[index]) + len(groups[index + 1]))
        groups[at : at + 2] = [(*groups[at], *groups[at + 1])]
    while len(groups) < most and any(len(group) > 1 for group in groups):
        at = max(range(len(groups)), key=lambda index: len(groups[index]))
        middle = len(groups[at]) // 2
        groups[at : at + 1] = [groups[at][:middle], groups[at][middle:]]
    return tuple(groups)


def judge_ladder(measured: MeasuredLadder, number: int) -> tuple[JudgedRung, ...]:
    """Return the rungs of a ladder, judged; targets that cannot be measured join the rung that they are on."""
    ladder, judged = measured.ladder, []
    for name in ladder.names[1:-1]:
        if name in measured.deaths and not _is_above_all(measured, name):
            ladder = ladder.without(name)
    texts = dict(zip(measured.ladder.names, measured.ladder.texts, strict=True))
    for (lower, upper), rung in zip(pairwise(ladder.names), ladder.rungs, strict=True):
        dies = [name in measured.deaths for name in (lower, upper)]
        judged.append(
            JudgedRung(
                rung=rung,
                lower=texts[lower],
                upper=texts[upper],
                ladder=number,
                finding=measured.findings.get((lower, upper)),
                death=measured.deaths[upper] if dies == [False, True] else "",
            )
        )
    return tuple(judged)


def _is_above_all(measured: MeasuredLadder, name: str) -> bool:
    """Return whether the new end cannot be measured, nor any target from this one on, so that it shows the cause."""
    names = measured.ladder.names
    return all(each in measured.deaths for each in names[names.index(name) :])


def explain(ladders: Iterable[MeasuredLadder]) -> Explanation:
    """Return what the ladders of a question show; each later one splits a rung of an earlier one."""
    rungs: list[JudgedRung] = []
    whole, death = None, ""
    for number, measured in enumerate(ladders):
        names = measured.ladder.names
        judged = judge_ladder(measured, number)
        if number == 0:
            whole = measured.findings.get((names[0], names[-1]))
            death = next((f"{name}: {measured.deaths[name]}" for name in names if name in measured.deaths), "")
            death = death if {names[0], names[-1]} & measured.deaths.keys() else ""
            rungs = list(judged)
            continue
        ends = (measured.ladder.texts[0], measured.ladder.texts[-1])
        at = next((index for index, each in enumerate(rungs) if (each.lower, each.upper) == ends), None)
        if at is not None:
            rungs[at : at + 1] = judged
    return Explanation(whole=whole, rungs=tuple(rungs), death=death)


def find_divisible(explanation: Explanation, tried: Iterable[tuple[str, str]]) -> JudgedRung | None:
    """Return the rung that is split next: the one that matters most among those with several causes."""
    done = set(tried)
    candidates = (each for each in explanation.mattering if each.rung.is_divisible)
    return next((each for each in candidates if (each.lower, each.upper) not in done), None)


def is_settled(measured: MeasuredLadder, margin: float) -> bool:
    """Return whether more rounds would change nothing: the whole is known, and which rungs matter.

    If an end died, the rung on which that begins is known from the first round on.
    """
    names = measured.ladder.names
    if {names[0], names[-1]} & measured.deaths.keys():
        return True
    whole = measured.findings.get((names[0], names[-1]))
    if whole is None or whole.verdict == "inconclusive":
        return False
    rungs = [measured.findings.get(pair) for pair in pairwise(names)]
    largest = max([whole.distance, *(each.distance for each in rungs if each and each.changed)])
    small = max(margin, WORTH * largest)
    return all(each is not None and (each.verdict != "inconclusive" or each.most <= small) for each in rungs)
