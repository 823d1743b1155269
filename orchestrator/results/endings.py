"""Summary of a journal: how the arms of a run ended, and what disturbed its rounds."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from orchestrator.contract import PILOT_ROUND
from orchestrator.model import (
    ArmKey,
    Calibrated,
    Discarded,
    Disturbed,
    Ended,
    Entry,
    Extended,
    Finished,
    Load,
    Lost,
    Plan,
    Postponed,
    Prolonged,
    Shares,
    Strays,
    Target,
    Watched,
)
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.comparisons import MeasuredPart, Parts
from orchestrator.stats.looks import (
    BystanderSchedule,
    LookSchedule,
    Stretch,
    make_bystander_schedule,
    make_schedule,
)


@dataclass(frozen=True)
class Endings:
    """The journal's record of how the arms of a run ended, and what disturbed its rounds."""

    refused: dict[ArmKey, str] = field(default_factory=dict)
    died: dict[ArmKey, Ended] = field(default_factory=dict)
    # These arms ended well at least once, even if their results were lost later.
    measured: set[ArmKey] = field(default_factory=set)
    lost: dict[Target, Lost] = field(default_factory=dict)
    redone: set[int] = field(default_factory=set)
    disturbed: list[Disturbed] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    discarded: list[Discarded] = field(default_factory=list)
    # This counts the processes that workloads left running.
    strays: Counter[Target] = field(default_factory=Counter)
    # TensorFlow stated these numbers of threads for each arm.
    threads: dict[ArmKey, set[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(set))
    loads: list[Load] = field(default_factory=list)
    # These replicates of the pilot count as a first round, and the budget left no time for these cases.
    counted: set[int] = field(default_factory=set)
    postponed: set[str] = field(default_factory=set)
    # Each extension has the number of rounds before it, and the looks of the new rounds.
    extended: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    # If the pilot planned looks, these replace those of the plan.
    looks: tuple[int, ...] = ()
    shares: dict[ArmKey, Shares] = field(default_factory=dict)
    rounds: int = 0
    # Rounds were added after these rounds although the error was spent.
    exploratory: tuple[int, ...] = ()
    finished: Finished | None = None
    # This is the total of all stretches that ended.
    seconds: float = 0.0
    # This is true while rounds are measured; otherwise, a run that has no end was cut short.
    going: bool = False
    # A merged run has the endings of each of its parts, and each part has the labels of its cases.
    parts: tuple["Endings", ...] = ()
    cases: frozenset[str] = frozenset()

    @cached_property
    def _by_case(self) -> dict[str, "Endings"]:
        return {case: part for part in self.parts for case in part.cases}

    def of(self, case: str) -> "Endings":
        """Return the endings of the part that measured a case, or these if there is no such part."""
        return self._by_case.get(case, self)

    def find_parts(self, planned: tuple[int, ...], *, is_bystander: bool = False) -> Parts:
        """Return the part of each case, with its looks; none if the run was measured as a whole."""
        found: dict[str, MeasuredPart] = {}
        for number, endings in enumerate(self.parts, 1):
            schedule = endings.bystander_schedule(planned) if is_bystander else endings.schedule(planned)
            found |= dict.fromkeys(endings.cases, MeasuredPart(number, schedule))
        return found

    @property
    def broken(self) -> tuple[str, ...]:
        """The streams that were not even files, and the versions in which another TensorFlow answered."""
        others = [entry for entry in self.lost.values() if (entry.stage, entry.failure) == ("start", "contract")]
        return (
            *(entry.what for entry in self.discarded if entry.stream),
            *(f"{entry.target}: {entry.reason}" for entry in others),
        )

    def why_unmeasured(self, arm: ArmKey) -> str:
        """Return why an arm has no result although nothing ended it and no budget postponed it."""
        if arm in self.measured:
            return "its results are lost"
        if self.finished is None:
            return "the run has not reached it yet" if self.going else "the run was cut short"
        return self.finished.how or "nothing was left to compare it with"

    @property
    def ended_by_budget(self) -> str:
        """Return how the budget ended the run, or ''."""
        return self.finished.how if self.finished and self.finished.at_budget else ""

    def schedule(self, planned: tuple[int, ...]) -> LookSchedule:
        """Return the looks that judge this run: those planned, and one wherever something else ended its rounds.

        A killed run is judged like an interrupted one, and a run that is still measuring only at its own looks.
        Parts have their own looks.
        """
        return replace(make_schedule(self._stretches(planned, self._stopped)), strict=self.going)

    def bystander_schedule(self, planned: tuple[int, ...]) -> BystanderSchedule:
        """Return the looks that judge a metric that ended no rounds of this run."""
        return make_bystander_schedule(self._stretches(planned, self._stopped))

    @property
    def _stopped(self) -> int | None:
        ended_early = not self.going if self.finished is None else self.finished.how != ""
        return self.rounds if ended_early else None

    def spent(self, planned: tuple[int, ...]) -> float:
        """Return the share of the error that was spent, if no more rounds follow."""
        schedule = make_schedule(self._stretches(planned, self.rounds))
        return schedule.spent[-1] if self.rounds >= schedule.looks[-1] else 0.0

    def _stretches(self, planned: tuple[int, ...], stopped: int | None) -> list[Stretch]:
        looks, stretches = self.looks or planned, []
        for rounds, more in self.extended:
            stretches.append(Stretch(looks, rounds))
            looks = more
        return [*stretches, Stretch(looks, stopped)]

    @property
    def unread(self) -> frozenset[tuple[Target, int]]:
        return frozenset((entry.target, entry.part) for entry in self.discarded if entry.stream)


def read_endings(run: RunFolder) -> Endings:
    own = summarise_endings(run.read_journal().entries)
    parts = [(part.read_plan(), summarise_endings(part.read_journal().entries)) for part in run.parts]
    return join_endings(own, parts) if parts else own


def join_endings(own: Endings, parts: Iterable[tuple[Plan, Endings]]) -> Endings:
    """Return the endings of a merged run, which has its own end.

    A version that one part lost is lost for the cases of that part alone.
    """
    joined = replace(own, strays=Counter(), threads={}, parts=tuple(
        replace(endings, cases=frozenset(case.label for case in plan.cases)) for plan, endings in parts
    ))  # fmt: skip
    for part in joined.parts:
        joined.refused.update(part.refused)
        joined.died.update(part.died)
        joined.measured.update(part.measured)
        joined.disturbed.extend(part.disturbed)
        joined.watched.extend(part.watched)
        joined.discarded.extend(part.discarded)
        joined.strays.update(part.strays)
        joined.threads.update(part.threads)
        joined.loads.extend(part.loads)
        joined.postponed.update(part.postponed)
        joined.shares.update(part.shares)
    return replace(joined, rounds=max(part.rounds for part in joined.parts))


def summarise_endings(entries: Iterable[Entry]) -> Endings:
    endings = Endings()
    finished, seconds = None, 0.0
    exploratory: list[int] = []
    rounds = 0
    looks: tuple[int, ...] = ()
    pilots: dict[ArmKey, int] = {}
    for entry in entries:
        if isinstance(entry, Ended) and entry.outcome == "measured":
            rounds = max(rounds, entry.round)
        if isinstance(entry, Ended) and entry.outcome == "refused":
            endings.refused[entry.arm] = entry.reason
        elif isinstance(entry, Ended) and entry.outcome == "died" and entry.closes_arm:
            endings.died[entry.arm] = entry
        elif isinstance(entry, Ended) and entry.outcome == "measured":
            # Later rounds had a worker for this version again, and repeated an arm that had died of an outside cause.
            endings.lost.pop(entry.target, None)
            endings.measured.add(entry.arm)
            if (death := endings.died.get(entry.arm)) and death.external:
                del endings.died[entry.arm]
            if entry.round == PILOT_ROUND:
                pilots[entry.arm] = entry.replicate
            elif not entry.once:
                endings.postponed.discard(entry.case)
            if entry.threads:
                endings.threads[entry.arm].add(entry.threads)
        elif isinstance(entry, Lost):
            endings.lost[entry.target] = entry
        elif isinstance(entry, Disturbed):
            endings.disturbed.append(entry)
            endings.redone.update(entry.replicates if entry.redone else ())
        elif isinstance(entry, Load):
            endings.loads.append(entry)
        elif isinstance(entry, Calibrated):
            pilot = pilots.get(ArmKey(entry.case, entry.target)) if entry.counts else None
            endings.counted.update(() if pilot is None else (pilot,))
        elif isinstance(entry, Postponed):
            endings.postponed.update(entry.cases)
        elif isinstance(entry, Shares):
            endings.shares[ArmKey(entry.case, entry.target)] = entry
        elif isinstance(entry, Watched):
            endings.watched.append(entry)
        elif isinstance(entry, Discarded):
            endings.discarded.append(entry)
        elif isinstance(entry, Strays):
            endings.strays[entry.target] += entry.count
        elif isinstance(entry, Extended):
            finished = None
            endings.extended.append((rounds, entry.looks))
            if entry.exploratory:
                exploratory.append(entry.first_round - 1)
        elif isinstance(entry, Prolonged):
            looks = entry.looks
            if endings.extended:
                endings.extended[-1] = (endings.extended[-1][0], looks)
        elif isinstance(entry, Finished):
            finished, seconds = entry, seconds + entry.seconds
    return replace(
        endings, looks=looks, rounds=rounds, exploratory=tuple(exploratory), finished=finished, seconds=seconds
    )
