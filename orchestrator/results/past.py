"""The past of a run that continues: rounds, efforts, dead arms, and the cases that are still open."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.contract import PILOT_ROUND
from orchestrator.model import ArmKey, Calibrated, Case, Disturbed, Ended, Entry, Evaluation, Plan, Replicate, Target
from orchestrator.model.failures import describe_failure
from orchestrator.results.claims import judge_claims
from orchestrator.results.endings import summarise_endings
from orchestrator.results.evaluation import FIRST_ROUND
from orchestrator.stats.calibrate import Effort
from orchestrator.terminal.counts import name_some


@dataclass
class Progress:
    """The state that earlier rounds pass on to later ones."""

    efforts: dict[ArmKey, Effort] = field(default_factory=dict)
    ended: set[ArmKey] = field(default_factory=set)
    # The keys are labels of cases.
    rounds: Counter[str] = field(default_factory=Counter)
    redone: Counter[str] = field(default_factory=Counter)
    replicates: int = 0
    # These count the visits since the command began, and those of them that were disturbed.
    visits: int = 0
    disturbed: int = 0
    # These are the reasons why dead replicates are measured again, in order, and the arms killed from outside so far.
    repeats: list[str] = field(default_factory=list)
    killed: set[ArmKey] = field(default_factory=set)

    def count(self, *, disturbed: bool) -> None:
        """Count a visit."""
        self.visits += 1
        self.disturbed += disturbed


@dataclass(frozen=True)
class Past:
    """The journal's record of the rounds that were already measured; `spent` is the share of the error that they spent.

    Arms that died of an outside cause are tried again. Arms whose code failed are not, and neither is a version whose
    TensorFlow cannot be imported.
    """

    progress: Progress
    rounds: int
    spent: float = 0.0
    # The pilot planned these looks; if it planned none, this is empty.
    looks: tuple[int, ...] = ()
    again: Mapping[ArmKey, Ended] = field(default_factory=dict)
    given_up: Mapping[ArmKey, Ended] = field(default_factory=dict)
    unable: frozenset[Target] = frozenset()


def read_past(plan: Plan, entries: Sequence[Entry]) -> Past:
    progress = Progress()
    measured: set[tuple[str, int]] = set()
    last_round = 0
    for entry in entries:
        if isinstance(entry, Calibrated):
            effort = Effort(entry.warmup, entry.bursts, entry.calls, entry.once)
            progress.efforts[ArmKey(entry.case, entry.target)] = effort
            measured |= {(entry.case, FIRST_ROUND)} if entry.counts else set()
        elif isinstance(entry, Ended):
            progress.replicates = max(progress.replicates, entry.replicate)
            last_round = max(last_round, entry.round)
            if entry.round != PILOT_ROUND and not entry.external and not entry.once:
                measured.add((entry.case, entry.round))
            if entry.closes_arm and not entry.external:
                progress.ended.add(entry.arm)
        elif isinstance(entry, Disturbed) and entry.redone:
            progress.redone[entry.case] += 1
    progress.rounds.update(case for case, _ in measured)
    endings = summarise_endings(entries)
    return Past(
        progress,
        max([last_round, *(number for _, number in measured)]),
        endings.spent(plan.looks),
        endings.looks,
        again={arm: death for arm, death in endings.died.items() if death.external},
        given_up={arm: death for arm, death in endings.died.items() if not death.external},
        unable=frozenset(target for target, loss in endings.lost.items() if loss.failure == "import"),
    )


def beyond(past: Past, written: Iterable[Replicate], plan: Plan) -> Past:
    """Add to the past what workers wrote but a killed host could no longer journal.

    Neither its rounds nor its numbers may be used again. A host is at most one round and one replicate per arm ahead of
    its journal.
    """
    rounds, most = past.rounds + 1, past.progress.replicates + 2 * len(plan.arms())
    replicates = [replicate for replicate in written if replicate.round <= rounds and replicate.number <= most]
    past.progress.replicates = max([past.progress.replicates, *(replicate.number for replicate in replicates)])
    return replace(past, rounds=max([past.rounds, *(replicate.round for replicate in replicates)]))


def is_closed(arm: ArmKey, evaluation: Evaluation, past: Past) -> bool:
    """Return whether an arm gets no more rounds: it ended, or its version has no environment or no TensorFlow."""
    return (
        arm in past.progress.ended
        or arm.target in past.unable
        or Target(arm.target.name) not in evaluation.manifest.environments
    )


def open_cases(evaluation: Evaluation, past: Past) -> list[Case]:
    """Return the cases that more rounds could still decide."""
    return choose_cases(evaluation.plan.cases, find_open_arms(evaluation, past))


def find_open_arms(evaluation: Evaluation, past: Past) -> frozenset[ArmKey]:
    """Return the arms that need more rounds, as `find_undecided_arms` finds them, of a run that has ended."""
    return find_undecided_arms(evaluation, lambda arm: is_closed(arm, evaluation, past))


def describe_nothing_open(path: Path, past: Past) -> str:
    text = f"every comparison in {path} that can have a verdict has one, and more rounds would bias it"
    if past.given_up:
        text += f". {_name_arms(past.given_up)} died, the cause is in their code, and they would die again"
    return f"{text}. To confirm it, start a new run"


def describe_deaths(past: Past) -> Iterator[str]:
    """Say which dead arms are tried again, and which are not."""
    if past.again:
        yield f"tried again, because the cause was outside of their code: {_name_arms(past.again)}"
    if past.given_up:
        yield f"not tried again, because the cause is in their code: {_name_arms(past.given_up)}"


def _name_arms(arms: Mapping[ArmKey, Ended]) -> str:
    names = [f"{arm.target} {arm.case}{describe_failure(death.failure)}" for arm, death in arms.items()]
    return name_some(names)


def choose_cases(cases: Iterable[Case], arms: Iterable[ArmKey]) -> list[Case]:
    """Return the cases that these arms belong to."""
    wanted = {label for label, _ in arms}
    return [case for case in cases if case.label in wanted]


def find_undecided_arms(evaluation: Evaluation, closed: Callable[[ArmKey], bool]) -> frozenset[ArmKey]:
    """Return the arms of each comparison, or a claim's statement, that more rounds could still decide."""
    deciding = [each for metric in evaluation.plan.decides for each in evaluation.metrics.get(metric, ())]
    unsure: set[tuple[ArmKey, ...]] = {
        each.pair.arms for each in (*evaluation.comparisons, *deciding) if each.verdict == "inconclusive"
    }
    for claim in judge_claims(evaluation, evaluation.plan.claims):
        for statement in (finding.statement for finding in claim.findings if finding.is_open):
            unsure.update([pair.arms for pair in statement.pairs] or [statement.arms])
    return frozenset(arm for arms in unsure if not any(map(closed, arms)) for arm in arms)
