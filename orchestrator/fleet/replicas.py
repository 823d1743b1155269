"""Reports whether two hosts that measured the same cases agree; their ratios are never averaged."""

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.fleet.arrive import find_hosts
from orchestrator.metrics import METRICS
from orchestrator.results.compare_runs import RatioChange, find_changes
from orchestrator.results.run import load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.counts import format_count, name_some

MOST_NAMED = 5
# Each line begins with one of these.
REPLICA_LINE_STARTS = ("two hosts ", "one host ")


def describe_replicas(first: RunFolder, second: RunFolder) -> tuple[str, ...]:
    """Return lines for the report of the `first` run: which cases two hosts measured, and what they found."""
    hosts = find_hosts(first), find_hosts(second)
    cases = [case.label for case in first.read_plan().cases]
    ids = {case: [of_copy[case] for of_copy in hosts if case in of_copy] for case in cases}
    lines: list[str] = []
    if twice := [case for case in cases if len(set(ids[case])) > 1]:
        which = "each case" if twice == cases else f"{len(twice)} of {format_count(len(cases), 'case')}"
        lines += _compare(first, second, hosts, twice, which)
    if same := [case for case in cases if len(ids[case]) > len(set(ids[case]))]:
        lines.append(f"one host measured both copies of {_name(same)}, which does not show whether hosts agree")
    if alone := [case for case in cases if len(ids[case]) == 1]:
        lines.append(f"one host alone has measured {_name(alone)} so far")
    return tuple(lines)


def _name(cases: Sequence[str]) -> str:
    return name_some(cases, MOST_NAMED, "case")


def _compare(
    first: RunFolder, second: RunFolder, hosts: Sequence[Mapping[str, str]], cases: Sequence[str], which: str
) -> Iterator[str]:
    """Yield what two hosts found in the cases that both measured."""
    known = set(cases)
    found = find_changes(load_run(first.path), load_run(second.path)).changes
    changes = [change for change in found if {arm.case for arm in change.pair.arms} <= known]
    differ = [change for change in changes if change.report_verdict in ("slower", "faster")]
    same = sum(change.verdict == "same" for change in changes)
    yield (
        f"two hosts measured {which}, and the report shows the first; of {format_count(len(changes), 'ratio')}, {same} "
        f"are the same on both, {len(differ)} differ, and {len(changes) - same - len(differ)} are open: "
        f"tfcompare compare {first.path} {second.path}"
    )
    yield from (_describe(change, hosts) for change in differ[:MOST_NAMED])
    if len(differ) > MOST_NAMED:
        yield f"two hosts differ in {format_count(len(differ) - MOST_NAMED, 'more ratio')}"


def _describe(change: RatioChange, hosts: Sequence[Mapping[str, str]]) -> str:
    baseline, candidate = change.pair.arms
    case = candidate.case if baseline.case == candidate.case else f"{candidate.case} against {baseline.case}"
    versions = dict.fromkeys(str(arm.target) for arm in (candidate, baseline))
    figures = [
        f"{figure} on host {of_copy[candidate.case]}"
        for comparison, of_copy in zip((change.earlier, change.later), hosts, strict=True)
        if (figure := METRICS[change.metric].describe(comparison))
    ]
    return f"two hosts differ: {case}, {' against '.join(versions)}: {' and '.join(figures)}"
