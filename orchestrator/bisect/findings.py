"""Evaluates one run of a search: how each of its pairs compares, or that a version cannot be measured.

A search knows versions by their numbers, because it looks for a release and its runs have no control arm. Changes apply
to all versions alike.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.bisect.search import BisectFinding, PlannedStep, swap_versions
from orchestrator.bisect.state import Skipped
from orchestrator.contract import PILOT_ROUND
from orchestrator.errors import ArmsDied, NothingSelected, TfCompareError
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, TIME, Followed
from orchestrator.model import (
    ArmResult,
    Case,
    Comparison,
    Ended,
    Evaluation,
    OutputVerdict,
    Target,
    TargetPair,
    VerdictName,
)
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sketches import show_share
from orchestrator.stats.comparisons import compare_figures

OF_RESULTS: Mapping[OutputVerdict, VerdictName] = {"differs": "slower", "not comparable": "inconclusive"}


def learn(
    evaluation: Evaluation, wanted: PlannedStep, timeouts: Mapping[str, bool], metric: Followed = TIME
) -> tuple[tuple[BisectFinding, ...], tuple[Skipped, ...]]:
    """Return what a run has found of a metric, and which version it cannot measure.

    A version in the middle that cannot be measured is left out. An end was measured before, so if it cannot be measured
    now, this run is the cause.
    """
    arms = {version_of(arm.target): arm for arm in evaluation.arms}
    if len(wanted.versions) > 2:
        middle = wanted.versions[1]
        if not _usable(arms[middle], timeouts):
            return (), (Skipped(version=middle, reason=why_unmeasured(arms[middle]), environment=False),)
    baseline = version_of(evaluation.plan.targets[0])
    found = {finding.later: finding for finding in _against(baseline, evaluation, wanted.thorough, metric)}
    for number in wanted.versions:
        found.setdefault(number, _not_compared(baseline, arms, number, wanted.thorough, metric))
    findings = []
    for earlier, later in wanted.pairs:
        between = found[later] if earlier == baseline else swap_versions(found[earlier])
        findings.append(_late(earlier, later, timeouts, wanted.thorough) or between)
    return tuple(findings), ()


def version_of(target: Target) -> str:
    """Return the version of a target, which may have changes behind it, as in 2.13.0+TF_X=1.

    What follows a + without an equals sign belongs to the version, as in 1.15.5+nv23.03.
    """
    return re.split(r"\+(?=[^+=]+=)", target.name, maxsplit=1)[0]


def order(wanted: PlannedStep) -> tuple[str, ...]:
    """Return the versions in the order that the run takes them.

    The one in the middle is the baseline, because both others are compared with it.
    """
    if len(wanted.versions) == 2:
        return wanted.versions
    earlier, middle, later = wanted.versions
    return middle, earlier, later


def versions_out_of_time(run: RunFolder, earlier: Iterable[RunFolder] = ()) -> dict[str, bool]:
    """Return the versions in which the case exceeded its deadline, and whether each counts as slow.

    It counts if no round was measured. The machine may have caused a single timeout after measured rounds, so that
    counts only if an earlier run of the search had one in that version as well.
    """
    before = {version for each in earlier for version in _timeouts(each)}
    measured = {
        version_of(entry.target)
        for entry in run.entries()
        if isinstance(entry, Ended) and entry.outcome == "measured" and entry.round != PILOT_ROUND
    }
    return {version: version not in measured or version in before for version in _timeouts(run)}


def _timeouts(run: RunFolder) -> set[str]:
    ended = (entry for entry in run.entries() if isinstance(entry, Ended) and entry.outcome == "died")
    return {version_of(entry.target) for entry in ended if entry.how == "timeout"}


def find_end_error(evaluation: Evaluation, wanted: PlannedStep, timeouts: Mapping[str, bool]) -> TfCompareError | None:
    """Return an error if the first run lacks an end, without which nothing can be searched."""
    lost = [arm for arm in evaluation.arms if version_of(arm.target) in wanted.versions and not _usable(arm, timeouts)]
    if not lost:
        return None
    reasons = "\n".join(f"{arm.target} {arm.outcome}: {arm.reason}" for arm in lost)
    kind = NothingSelected if all(arm.outcome == "refused" for arm in lost) else ArmsDied
    return kind(f"an end of the search cannot be measured; take another --good or --bad:\n{reasons}")


def why_unmeasured(arm: ArmResult) -> str:
    return f"{arm.outcome}: {arm.reason}"


def _usable(arm: ArmResult, timeouts: Mapping[str, bool]) -> bool:
    return arm.outcome == "measured" or version_of(arm.target) in timeouts


def _late(earlier: str, later: str, timeouts: Mapping[str, bool], thorough: bool) -> BisectFinding | None:
    """Return a finding for a pair in which a version exceeded the deadline.

    A deadline is as good as a slow time, so the verdict follows from which of the two exceeded it.
    """
    late = [version for version in (earlier, later) if timeouts.get(version)]
    if not late:
        return None
    return BisectFinding(
        earlier=earlier,
        later=later,
        verdict="same" if len(late) == 2 else "slower" if late == [later] else "faster",
        reason=f"{' and '.join(late)} ran into the deadline of --timeout, which counts as slow",
        thorough=thorough,
    )


def _not_compared(
    baseline: str, arms: Mapping[str, ArmResult], later: str, thorough: bool, metric: Followed
) -> BisectFinding:
    """Return a finding for two versions that have no comparison, with what happened to the one that is missing."""
    missing = next((arms[number] for number in (baseline, later) if arms[number].outcome != "measured"), None)
    reason = f"{missing.target} {why_unmeasured(missing)}" if missing else f"no {metric} was measured"
    return BisectFinding(
        earlier=baseline, later=later, verdict="inconclusive", reason=reason, thorough=thorough, metric=metric
    )


def _against(baseline: str, evaluation: Evaluation, thorough: bool, metric: Followed) -> Iterator[BisectFinding]:
    """Yield what a run found about each version in comparison with its first one."""
    if metric == RESULTS:
        for output in evaluation.outputs:
            yield BisectFinding(
                earlier=baseline,
                later=version_of(output.candidate),
                verdict=OF_RESULTS.get(output.verdict, "same"),
                reason=output.reason if output.difference is None else f"by {show_share(output.difference)}",
                thorough=thorough,
                metric=metric,
            )
        return
    for comparison in evaluation.comparisons:
        if comparison.pair.metric == metric:
            yield _from_comparison(baseline, comparison, thorough=thorough)


def _from_comparison(baseline: str, comparison: Comparison, *, thorough: bool = False) -> BisectFinding:
    return BisectFinding(
        earlier=baseline,
        later=version_of(comparison.pair.arms[1].target),
        verdict=comparison.verdict,
        # A search has a different rule for what is certain, so this reason does not apply to it.
        reason="" if comparison.row_only else comparison.reason,
        ratio=comparison.ratio,
        ci_low=comparison.ci_low,
        ci_high=comparison.ci_high,
        difference=comparison.difference,
        difference_low=comparison.difference_low,
        difference_high=comparison.difference_high,
        rounds=comparison.rounds,
        thorough=thorough,
        size=comparison.size,
        metric=comparison.pair.metric,
    )


def learn_sizes(case: Case, wanted: PlannedStep, sizes: Mapping[str, int], margin: float) -> tuple[BisectFinding, ...]:
    """Return what the sizes of environments show of each pair of versions; no round is measured for them."""
    spec = METRICS["size"]
    findings = []
    for earlier, later in wanted.pairs:
        pair = TargetPair(case=case, baseline=Target(earlier), candidate=Target(later), metric=spec.name)
        findings.append(_from_comparison(earlier, compare_figures(pair, sizes[earlier], sizes[later], margin)))
    return tuple(findings)
