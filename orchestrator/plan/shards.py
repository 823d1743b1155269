"""Distributes the cases of a run over machines, so that cases that are compared stay on the same one. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.errors import NothingSelected
from orchestrator.model import Case, Workload
from orchestrator.plan.pairs import baselines_of
from orchestrator.terminal.counts import format_count


def take_shard(cases: Sequence[Case], workloads: Mapping[str, Workload], number: int, count: int) -> tuple[Case, ...]:
    """Return the cases of one of `count` shards, which are numbered from 1.

    Cases that are compared with each other are in the same shard. Shards have about the same number of cases.
    """
    groups = list(group_cases(cases, workloads))
    dealt: list[list[Case]] = [[] for _ in range(count)]
    # The largest groups come first. The sort keeps the order of groups of the same size.
    for group in sorted(groups, key=len, reverse=True):
        min(dealt, key=len).extend(group)
    own = set(dealt[number - 1])
    if not own:
        raise NothingSelected(
            f"shard {number} of {count} has no case: cases that are compared stay on one machine, and form "
            f"{format_count(len(groups), 'group')}; use at most {format_count(len(groups), 'shard')}"
        )
    return tuple(case for case in cases if case in own)


def group_cases(cases: Sequence[Case], workloads: Mapping[str, Workload]) -> Iterator[list[Case]]:
    """Yield groups of cases that are compared with each other, directly or indirectly, in their order."""
    present = set(cases)
    leader = {case: case for case in cases}

    def find(case: Case) -> Case:
        while leader[case] != case:
            case = leader[case]
        return case

    for case in cases:
        for baseline in baselines_of(case, workloads[case.workload], present):
            one, other = find(case), find(baseline)
            leader[one] = other
    by_leader: dict[Case, list[Case]] = {}
    for case in cases:
        by_leader.setdefault(find(case), []).append(case)
    yield from by_leader.values()
