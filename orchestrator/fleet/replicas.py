"""Says whether two hosts that measured the same cases agree; their ratios are never averaged."""

from collections.abc import Sequence
from pathlib import Path

from orchestrator.metrics import METRICS
from orchestrator.model import Manifest
from orchestrator.results.compare_runs import RatioChange, find_changes
from orchestrator.results.run import Run, load_run
from orchestrator.terminal.counts import format_count

MOST_NAMED = 5


def describe_replicas(first: Path, second: Path) -> tuple[str, ...]:
    """Return what two hosts found, in lines for every report of the run; `first` is what that run shows."""
    one, other = load_run(first), load_run(second)
    changes = find_changes(one, other).changes
    differ = [change for change in changes if change.verdict in ("slower", "faster")]
    same = sum(change.verdict == "same" for change in changes)
    left = len(changes) - same - len(differ)
    lines = [
        f"two hosts measured each case, and this shows the first; of {format_count(len(changes), 'ratio')}, {same} are "
        f"the same on both, {len(differ)} differ, and {left} are open: tfcompare compare {first} {second}"
    ]
    lines += [_describe(change, one, other) for change in differ[:MOST_NAMED]]
    lines += [f"and {len(differ) - MOST_NAMED} more differ between hosts"] if len(differ) > MOST_NAMED else []
    return tuple(lines)


def _describe(change: RatioChange, one: Run, other: Run) -> str:
    baseline, candidate = change.pair.arms
    case = candidate.case if baseline.case == candidate.case else f"{candidate.case} against {baseline.case}"
    versions = dict.fromkeys(str(arm.version) for arm in (candidate, baseline))
    figures = [
        f"{figure} on {_find_host(run.manifest, candidate.case)}"
        for contrast, run in ((change.earlier, one), (change.later, other))
        if (figure := METRICS[change.metric].describe(contrast))
    ]
    return f"hosts differ: {case}, {' against '.join(versions)}: {' and '.join(figures)}"


def _find_host(manifest: Manifest, case: str) -> str:
    ids: Sequence[object] = [each.host.get("id") for each in manifest.hosts if case in each.cases]
    return f"host {ids[0]}" if ids else "an unknown host"
