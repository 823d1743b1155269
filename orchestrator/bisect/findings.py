"""Evaluates one run of a search: compares the versions of each pair, or finds that a version cannot be measured.

A search identifies versions by number, because it looks for a release and its runs have no control arm. Changes apply
to all versions alike.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.bisect.search import BisectFinding, PlannedStep, swap_versions
from orchestrator.bisect.state import SkippedVersion
from orchestrator.catalog.targets import TODAY
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

RESULT_VERDICTS: Mapping[OutputVerdict, VerdictName] = {"differs": "slower", "not comparable": "inconclusive"}


def extract_findings(
    evaluation: Evaluation, wanted: PlannedStep, timeouts: Mapping[str, bool], metric: Followed = TIME
) -> tuple[tuple[BisectFinding, ...], tuple[SkippedVersion, ...]]:
    """Return the findings of a run about a metric, and the version that it could not measure.

    A middle version that cannot be measured is left out. The end versions were measured in an earlier run, so if one of
    them cannot be measured now, the cause is this run.
    """
    arms = {version_of(arm.target): arm for arm in evaluation.arms}
    if len(wanted.versions) > 2:
        middle = wanted.versions[1]
        if not _usable(arms[middle], timeouts):
            return (), (SkippedVersion(version=middle, reason=why_unmeasured(arms[middle]), environment=False),)
    baseline = version_of(evaluation.plan.targets[0])
    found = {
        finding.later: finding for finding in _find_against_baseline(baseline, evaluation, wanted.thorough, metric)
    }
    for number in wanted.versions:
        found.setdefault(number, _build_finding_without_comparison(baseline, arms, number, wanted.thorough, metric))
    findings = []
    for earlier, later in wanted.pairs:
        between = found[later] if earlier == baseline else swap_versions(found[earlier])
        findings.append(_build_timeout_finding(earlier, later, timeouts, wanted.thorough) or between)
    return tuple(findings), ()


def version_of(target: Target) -> str:
    """Return the version of a target, which may be followed by changes, as in 2.13.0+TF_X=1 or 2.8.4@v1.

    Text after a + belongs to the version unless it is a change, as in 1.15.5+nv23.03.
    """
    return re.split(rf"@|\+(?=[^+=<>~!]+[=<>~!]|{TODAY}(@|\+|$))", target.name, maxsplit=1)[0]


def order_versions(wanted: PlannedStep) -> tuple[str, ...]:
    """Return the versions in the order in which the run measures them.

    The middle version is the baseline, because both others are compared with it.
    """
    if len(wanted.versions) == 2:
        return wanted.versions
    earlier, middle, later = wanted.versions
    return middle, earlier, later


def find_timed_out_versions(run: RunFolder, earlier: Iterable[RunFolder] = ()) -> dict[str, bool]:
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
    """Return an error if the first run could not measure an end version, which the search needs."""
    lost = [arm for arm in evaluation.arms if version_of(arm.target) in wanted.versions and not _usable(arm, timeouts)]
    if not lost:
        return None
    reasons = "\n".join(f"{arm.target} {arm.outcome}: {arm.reason}" for arm in lost)
    kind = NothingSelected if all(arm.outcome == "refused" for arm in lost) else ArmsDied
    return kind(f"an end version of the search cannot be measured; choose another --good or --bad:\n{reasons}")


def why_unmeasured(arm: ArmResult) -> str:
    return f"{arm.outcome}: {arm.reason}"


def _usable(arm: ArmResult, timeouts: Mapping[str, bool]) -> bool:
    return arm.outcome == "measured" or version_of(arm.target) in timeouts


def _build_timeout_finding(
    earlier: str, later: str, timeouts: Mapping[str, bool], thorough: bool
) -> BisectFinding | None:
    """Return a finding for a pair in which a version exceeded the deadline.

    Exceeding the deadline counts as being slow, so the verdict depends on which of the two versions exceeded it.
    """
    late = [version for version in (earlier, later) if timeouts.get(version)]
    if not late:
        return None
    return BisectFinding(
        earlier=earlier,
        later=later,
        verdict="same" if len(late) == 2 else "slower" if late == [later] else "faster",
        reason=f"{' and '.join(late)} exceeded the deadline of --timeout, which counts as slow",
        thorough=thorough,
    )


def _build_finding_without_comparison(
    baseline: str, arms: Mapping[str, ArmResult], later: str, thorough: bool, metric: Followed
) -> BisectFinding:
    """Return a finding for two versions without a comparison; its reason is the outcome of the missing version."""
    missing = next((arms[number] for number in (baseline, later) if arms[number].outcome != "measured"), None)
    reason = f"{missing.target} {why_unmeasured(missing)}" if missing else f"no {metric} was measured"
    return BisectFinding(
        earlier=baseline, later=later, verdict="inconclusive", reason=reason, thorough=thorough, metric=metric
    )


def _find_against_baseline(
    baseline: str, evaluation: Evaluation, thorough: bool, metric: Followed
) -> Iterator[BisectFinding]:
    """Yield what a run found about each version in comparison with its first one."""
    if metric == RESULTS:
        for output in evaluation.outputs:
            yield BisectFinding(
                earlier=baseline,
                later=version_of(output.candidate),
                verdict=RESULT_VERDICTS.get(output.verdict, "same"),
                reason=output.reason if output.difference is None else f"by {show_share(output.difference)}",
                thorough=thorough,
                metric=metric,
            )
        return
    for comparison in evaluation.comparisons:
        if comparison.pair.metric == metric:
            later = version_of(comparison.pair.arms[1].target)
            yield convert_comparison(baseline, later, comparison, thorough=thorough)


def convert_comparison(earlier: str, later: str, comparison: Comparison, *, thorough: bool = False) -> BisectFinding:
    return BisectFinding(
        earlier=earlier,
        later=later,
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


def compare_sizes(
    case: Case, wanted: PlannedStep, sizes: Mapping[str, int], margin: float
) -> tuple[BisectFinding, ...]:
    """Return one finding for each pair of versions from the sizes of their environments, without measuring rounds."""
    spec = METRICS["size"]
    findings = []
    for earlier, later in wanted.pairs:
        pair = TargetPair(case=case, baseline=Target(earlier), candidate=Target(later), metric=spec.name)
        sized = compare_figures(pair, sizes[earlier], sizes[later], margin)
        findings.append(convert_comparison(earlier, later, sized))
    return tuple(findings)
