"""What the journal says of the arms that are not simply measured."""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from orchestrator.model import ArmKey, Discarded, Disturbed, Ended, Extended, Finished, Lost, Watched
from orchestrator.results.rundir import RunDir


@dataclass(frozen=True)
class Endings:
    """What the journal says about arms that were not simply measured."""

    refused: dict[ArmKey, str] = field(default_factory=dict)
    died: dict[ArmKey, Ended] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    redone: set[int] = field(default_factory=set)
    disturbed: list[Disturbed] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    discarded: list[Discarded] = field(default_factory=list)
    # Of each arm, what TensorFlow stated.
    threads: dict[ArmKey, set[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(set))
    exploratory_from: int | None = None
    finished: Finished | None = None

    @property
    def broken(self) -> tuple[str, ...]:
        """The streams that were not even files."""
        return tuple(entry.what for entry in self.discarded if entry.stream)

    @property
    def unread(self) -> frozenset[tuple[str, int]]:
        return frozenset((entry.version, entry.part) for entry in self.discarded if entry.stream)


def read_endings(run: RunDir) -> Endings:
    endings = Endings()
    finished = None
    exploratory_from = None
    for entry in run.entries():
        if isinstance(entry, Ended) and entry.outcome == "refused":
            endings.refused[entry.arm] = entry.reason
        elif isinstance(entry, Ended) and entry.outcome == "died" and entry.closes_arm:
            endings.died[entry.arm] = entry
        elif isinstance(entry, Ended) and entry.outcome == "measured":
            # More rounds had a worker for it again.
            endings.lost.pop(entry.version, None)
            if entry.threads:
                endings.threads[entry.arm].add(entry.threads)
        elif isinstance(entry, Lost):
            endings.lost[entry.version] = f"{entry.stage}: {entry.reason}"
        elif isinstance(entry, Disturbed):
            endings.disturbed.append(entry)
            endings.redone.update(entry.replicates if entry.redone else ())
        elif isinstance(entry, Watched):
            endings.watched.append(entry)
        elif isinstance(entry, Discarded):
            endings.discarded.append(entry)
        elif isinstance(entry, Extended):
            finished = None
            if entry.exploratory and exploratory_from is None:
                exploratory_from = entry.first_round
        elif isinstance(entry, Finished):
            finished = entry
    return replace(endings, exploratory_from=exploratory_from, finished=finished)
