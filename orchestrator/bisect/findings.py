"""What one run of a search tells: of each of its pairs how they compare, or that a version cannot be measured."""

from collections.abc import Collection

from orchestrator.bisect.search import Finding, Wanted, turned
from orchestrator.bisect.state import Skipped
from orchestrator.errors import ArmsDied, NothingSelected, TfCompareError
from orchestrator.model import Arm, Comparison, Contrast, Ended
from orchestrator.results.rundir import RunDir


def learn(
    comparison: Comparison, wanted: Wanted, timeouts: Collection[str]
) -> tuple[tuple[Finding, ...], tuple[Skipped, ...]]:
    """A version in the middle that cannot be measured is left out. An end was measured before: if it cannot be now, it
    is this run that is to blame."""
    arms = {arm.version: arm for arm in comparison.arms}
    if len(wanted.versions) > 2:
        middle = wanted.versions[1]
        if not _usable(arms[middle], timeouts):
            return (), (Skipped(version=middle, reason=why_not(arms[middle]), environment=False),)
    contrasts = {contrast.pair.arms[1][1]: contrast for contrast in comparison.contrasts}
    baseline = comparison.plan.versions[0]
    return tuple(
        _late(pair, timeouts, wanted.thorough) or _finding(pair, baseline, contrasts, wanted.thorough)
        for pair in wanted.pairs
    ), ()


def order(wanted: Wanted) -> tuple[str, ...]:
    """As the run takes them: the one in the middle is the baseline, for both others are compared with it."""
    if len(wanted.versions) == 2:
        return wanted.versions
    earlier, middle, later = wanted.versions
    return middle, earlier, later


def timed_out(run: RunDir) -> frozenset[str]:
    """The versions in which the case ran into its deadline."""
    return frozenset(
        entry.version
        for entry in run.entries()
        if isinstance(entry, Ended) and entry.outcome == "died" and entry.how == "timeout"
    )


def end_lost(comparison: Comparison, wanted: Wanted, timeouts: Collection[str]) -> TfCompareError | None:
    """Of the first run: without both ends nothing can be searched."""
    lost = [arm for arm in comparison.arms if arm.version in wanted.versions and not _usable(arm, timeouts)]
    if not lost:
        return None
    told = "\n".join(f"{arm.version} {arm.outcome}: {arm.reason}" for arm in lost)
    kind = NothingSelected if all(arm.outcome == "refused" for arm in lost) else ArmsDied
    return kind(f"an end of the search cannot be measured; take another --good or --bad:\n{told}")


def why_not(arm: Arm) -> str:
    return f"{arm.outcome}: {arm.reason}"


def _usable(arm: Arm, timeouts: Collection[str]) -> bool:
    return arm.outcome == "measured" or arm.version in timeouts


def _late(pair: tuple[str, str], timeouts: Collection[str], thorough: bool) -> Finding | None:
    """A deadline is as good as a slow time: which of the two ran into it is the verdict."""
    earlier, later = pair
    late = [version for version in pair if version in timeouts]
    if not late:
        return None
    return Finding(
        earlier=earlier,
        later=later,
        verdict="same" if len(late) == 2 else "slower" if late == [later] else "faster",
        reason=f"{' and '.join(late)} ran into the deadline of --timeout, which counts as slow",
        thorough=thorough,
    )


def _finding(pair: tuple[str, str], baseline: str, contrasts: dict[str, Contrast], thorough: bool) -> Finding:
    earlier, later = pair
    contrast = contrasts[later if earlier == baseline else earlier]
    found = Finding(
        earlier=baseline,
        later=contrast.pair.arms[1][1],
        verdict=contrast.verdict,
        reason=contrast.reason,
        ratio=contrast.ratio,
        ci_low=contrast.ci_low,
        ci_high=contrast.ci_high,
        rounds=contrast.rounds,
        thorough=thorough,
    )
    return found if earlier == baseline else turned(found)
