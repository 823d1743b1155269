"""Checks result streams against the journal.

A replicate counts only if the host asked for it and its worker announced it.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.errors import ContractBroken
from orchestrator.model import ArmKey, Ended, Entry, Finished, Machine, Plan, Target
from orchestrator.results.replicates import ReadStream, Replicate


@dataclass
class Announced:
    """The journal's record of how each replicate ended; it admits streams one by one, and each replicate once.

    A run that was cut short may hold rows that were written but not yet recorded; they are left out. If anything else
    differs from the journal, nothing in the stream is used.
    """

    arms: frozenset[ArmKey]
    # By version and replicate.
    ends: Mapping[tuple[Target, int], Ended]
    cut: bool
    _seen: set[tuple[Target | None, int]] = field(default_factory=set)

    def __call__(self, read: ReadStream) -> tuple[frozenset[int], tuple[str, ...]]:
        admitted: set[int] = set()
        unknown: list[int] = []
        self._seen.update((read.stream.version, number) for number in read.idle)
        for replicate in read.replicates:
            end = self.ends.get((replicate.version, replicate.number))
            if end is None and self.cut:
                unknown.append(replicate.number)
            elif wrong := self._wrong(read, replicate, end):
                raise ContractBroken(
                    f"{read.stream.path}: replicate {replicate.number} {wrong}. Nothing in this file is used; run "
                    f"{replicate.version} again"
                )
            elif end and end.outcome == "measured":
                admitted.add(replicate.number)
                self._seen.add((replicate.version, replicate.number))
        return frozenset(admitted), tuple(self._notes(read, unknown))

    def missing(self, unread: Container[tuple[Target | None, int]]) -> list[str]:
        """Return one line per version about measured replicates that are in no stream.

        Replicates of streams that could not be read are not listed. Journals of earlier releases do not say in which
        stream a replicate should be.
        """
        lost = Counter(
            version
            for (version, number), end in self.ends.items()
            if end.outcome == "measured"
            and end.part is not None
            and (version, end.part) not in unread
            and (version, number) not in self._seen
        )
        return [
            f"{version}: {count} replicates were measured and are missing from its results; run it again"
            for version, count in lost.items()
        ]

    def _wrong(self, read: ReadStream, replicate: Replicate, end: Ended | None) -> str:
        """Describe how a replicate differs from what the journal says; return '' if it does not."""
        if replicate.arm not in self.arms:
            return f"is of {replicate.case} in {replicate.version}, which the plan does not have"
        if end is None:
            return "is not in the journal"
        if (replicate.case, replicate.round) != (end.case, end.round):
            return f"is of {replicate.case} in round {replicate.round}; the journal says {end.case}, round {end.round}"
        if (replicate.version, replicate.number) in self._seen:
            return "was already read from another file"
        if end.outcome == "measured" and end.part not in (None, read.stream.part):
            return f"was closed by another worker (number {end.part})"
        if end.outcome == "measured" and end.rows not in (None, read.rows[replicate.number]):
            return f"has {read.rows[replicate.number]} rows, its worker announced {end.rows}"
        return ""

    def _notes(self, read: ReadStream, unknown: list[int]) -> Iterable[str]:
        if unknown:
            yield (
                f"{read.stream.name}: {len(unknown)} replicates were written but not yet recorded when the run was "
                "cut short; they do not count"
            )


def of_journal(plan: Plan, journal: Sequence[Entry]) -> Announced | None:
    """Return the journal's record of replicates.

    Returns None if the journal belongs to no measurement: then there is nothing to check streams against.
    """
    ends = {(entry.version, entry.replicate): entry for entry in journal if isinstance(entry, Ended)}
    if not ends and not any(isinstance(entry, Machine) for entry in journal):
        return None
    arms = frozenset(arm.key for arm in plan.arms())
    return Announced(arms, ends, _was_cut(journal))


def _was_cut(entries: Sequence[Entry]) -> bool:
    """Return whether any measurement of the run ended, or may have ended, in the middle of a replicate."""
    begun = sum(isinstance(entry, Machine) and entry.when == "begin" for entry in entries)
    finished = [entry for entry in entries if isinstance(entry, Finished)]
    # Journals of earlier releases do not say it.
    old = all(entry.part is None for entry in entries if isinstance(entry, Ended) and entry.outcome == "measured")
    return old or begun > len(finished) or not finished or any(entry.cut for entry in finished)
