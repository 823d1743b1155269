"""Checks result streams against the journal.

A replicate counts only if the host asked for it and its worker announced it.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import ContractBroken
from orchestrator.model import ArmKey, Ended, Entry, Finished, Machine, Plan, Replicate, Synced, Target
from orchestrator.results.replicates import ReadStream
from orchestrator.results.run_folder import Journal

# A replicate is identified by its version and its number.
Key = tuple[Target, int]


@dataclass
class JournalRecord:
    """The journal's record of how each replicate ended; it admits streams one by one, and each replicate once.

    A run that was cut short, or whose journal is damaged, may hold rows that the journal does not name; they are left
    out. If anything else differs from the journal, nothing in the stream is used.
    """

    arms: frozenset[ArmKey]
    # The inner keys are numbers of replicates, which are unique within a version.
    ends: Mapping[Target, Mapping[int, Ended]]
    cut: bool
    # The journal says that these were measured more than once.
    doubled: frozenset[Key] = frozenset()
    # These were measured shortly before a run was cut short; after a power failure, their rows may be missing.
    unsynced: frozenset[Key] = frozenset()
    _seen: dict[Target | None, set[int]] = field(default_factory=lambda: defaultdict(set))

    def __call__(self, read: ReadStream) -> tuple[frozenset[int], tuple[str, ...]]:
        admitted: set[int] = set()
        unknown: list[Replicate] = []
        wrong: dict[str, list[Replicate]] = {}
        self._seen[read.stream.target] |= read.idle
        for replicate in read.replicates:
            end = self.ends.get(replicate.target, {}).get(replicate.number)
            if end is None and self.cut:
                unknown.append(replicate)
            elif what := self._wrong(read, replicate, end):
                wrong.setdefault(what, []).append(replicate)
            elif end and end.outcome == "measured":
                admitted.add(replicate.number)
        if wrong:
            raise ContractBroken(_describe_wrong(read.stream.path, wrong))
        for each in read.replicates:
            if each.number in admitted:
                self._seen[each.target].add(each.number)
        if not unknown:
            return frozenset(admitted), ()
        what = f"{_replicates(len(unknown))} of {unknown[0].target}"
        note = (
            f"{read.stream.name}: the journal does not have {what}, because the run was cut short or the journal is "
            "damaged; they do not count"
        )
        return frozenset(admitted), (note,)

    def missing(self, unread: Container[tuple[Target | None, int]]) -> tuple[list[str], list[str]]:
        """Return lines about lost or doubled replicates, and lines about those that were not yet on the disk.

        Each line is about one version. Replicates of streams that could not be read are not listed.
        """
        lost = [
            (target, number)
            for target, ends in self.ends.items()
            for number, end in ends.items()
            if end.outcome == "measured" and (target, end.part) not in unread and number not in self._seen[target]
        ]
        broken = [
            f"{target}: the results of {_replicates(count)} are lost: measured, and in no file. Measure {target} "
            "again, in a new run"
            for target, count in _by_target(key for key in lost if key not in self.unsynced)
        ]
        broken += [
            f"{target}: the journal says of {_replicates(count)} twice that it was measured. Measure {target} again, "
            "in a new run"
            for target, count in _by_target(self.doubled)
        ]
        return broken, [
            f"{target}: the results of {_replicates(count)} were not on the disk yet when the machine stopped; they "
            "do not count"
            for target, count in _by_target(key for key in lost if key in self.unsynced)
        ]

    def _wrong(self, read: ReadStream, replicate: Replicate, end: Ended | None) -> str:
        """Describe how a replicate differs from what the journal says; return '' if it does not."""
        if replicate.arm not in self.arms:
            return f"is of {replicate.case} in {replicate.target}, which the plan does not have"
        if end is None:
            return "is not in the journal"
        if (replicate.case, replicate.round) != (end.case, end.round):
            return f"is of {replicate.case} in round {replicate.round}; the journal says {end.case}, round {end.round}"
        if replicate.number in self._seen[replicate.target]:
            return "was already read from another file"
        if end.outcome == "measured" and end.part != read.stream.part:
            return f"was closed by another worker (number {end.part})"
        if end.outcome == "measured" and end.rows != read.rows[replicate.number]:
            return f"has {read.rows[replicate.number]} rows, its worker announced {end.rows}"
        return ""


def _replicates(count: int) -> str:
    return "1 replicate" if count == 1 else f"{count} replicates"


def _by_target(keys: Iterable[Key]) -> list[tuple[Target, int]]:
    return sorted(Counter(target for target, _ in keys).items(), key=lambda item: str(item[0]))


def _describe_wrong(path: Path, wrong: Mapping[str, Sequence[Replicate]]) -> str:
    """Return one line that counts the replicates of a stream that differ from the journal, and describes the first."""
    what, (first, *_) = next(iter(wrong.items()))
    count = sum(map(len, wrong.values()))
    others = f", and {count - 1} more are not as the journal says" if count > 1 else ""
    return (
        f"{path}: replicate {first.number} {what}{others}. Nothing in this file is used; "
        f"measure {first.target} again, in a new run"
    )


def read_journal_record(plan: Plan, journal: Journal) -> JournalRecord | None:
    """Return the journal's record of replicates.

    Returns None if the journal belongs to no measurement: then there is nothing to check streams against.
    """
    entries = journal.entries
    measured = [entry for entry in entries if isinstance(entry, Ended)]
    if not measured and not any(isinstance(entry, Machine) for entry in entries):
        return None
    ends: dict[Target, dict[int, Ended]] = defaultdict(dict)
    for entry in measured:
        ends[entry.target][entry.replicate] = entry
    counts = Counter((end.target, end.replicate) for end in measured if end.outcome == "measured")
    return JournalRecord(
        arms=frozenset(arm.key for arm in plan.arms()),
        ends=ends,
        cut=bool(journal.skipped) or _was_cut(entries),
        doubled=frozenset(key for key, count in counts.items() if count > 1),
        unsynced=_find_unsynced(entries),
    )


def _find_unsynced(entries: Sequence[Entry]) -> frozenset[Key]:
    """Return the measured replicates whose rows may not be on the disk, according to the journal."""
    unsynced: set[Key] = set()
    pending: set[Key] = set()
    for entry in entries:
        if isinstance(entry, Ended) and entry.outcome == "measured":
            pending.add((entry.target, entry.replicate))
        elif isinstance(entry, Synced | Finished):
            pending.clear()
        elif isinstance(entry, Machine) and entry.when == "begin":
            unsynced |= pending
            pending.clear()
    return frozenset(unsynced | pending)


def _was_cut(entries: Sequence[Entry]) -> bool:
    """Return whether any measurement of the run ended, or may have ended, in the middle of a replicate."""
    begun = sum(isinstance(entry, Machine) and entry.when == "begin" for entry in entries)
    finished = [entry for entry in entries if isinstance(entry, Finished)]
    return begun > len(finished) or not finished or any(entry.cut for entry in finished)
