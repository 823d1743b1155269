"""What changed in addition to times: a sentence per version and metric, and one where nothing changed."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from orchestrator.metrics import METRICS, is_counted
from orchestrator.metrics.spec import MetricSpec, find_figure
from orchestrator.model import ArmKey, ArmResult, Comparison, Evaluation, OutputComparison, Target
from orchestrator.reports.case_names import short_names
from orchestrator.reports.magnitudes import show_estimate
from orchestrator.reports.reasons import UNCERTAIN, count_uncertain
from orchestrator.results.sketches import show_share
from orchestrator.stats.slowdown import LARGEST_SHOWN
from orchestrator.terminal.counts import format_count

# Versions with a sentence for each metric.
MOST_VERSIONS = 3
DIFFERENT = ("slower", "faster")


def metric_sentences(evaluation: Evaluation) -> tuple[str, ...]:
    names = short_names(arm.case for arm in evaluation.arms)
    arms = {arm.key: arm for arm in evaluation.arms}
    return (
        *(
            sentence
            for metric, comparisons in evaluation.metrics.items()
            for sentence in (
                *_of_metric(METRICS[metric], _to_tell(comparisons, counted=is_counted(metric)), arms, names),
                *_describe_reach(METRICS[metric], _to_tell(comparisons), asked=metric in evaluation.plan.decides),
            )
        ),
        *describe_other_results(evaluation),
        *_count_results([each for each in evaluation.outputs if not each.candidate.control]),
    )


def _to_tell(comparisons: Sequence[Comparison], *, counted: bool = False) -> list[Comparison]:
    """Return the comparisons that have a figure; those of counts also say why they have none."""
    return [
        each for each in comparisons if (each.estimate is not None or counted) and not each.pair.arms[1].target.control
    ]


def _of_metric(
    spec: MetricSpec, comparisons: Sequence[Comparison], arms: Mapping[ArmKey, ArmResult], names: Mapping[str, str]
) -> Iterator[str]:
    by_target: dict[Target, list[Comparison]] = {}
    for each in comparisons:
        by_target.setdefault(each.pair.arms[1].target, []).append(each)
    changed = {
        target: own for target, own in by_target.items() if any(each.report_verdict in DIFFERENT for each in own)
    }
    told = sorted(changed, key=lambda target: -_size(changed[target]))[:MOST_VERSIONS]
    for target in (target for target in changed if target in told):
        yield _of_target(spec, changed[target], arms, names)
    if left_out := [str(target) for target in changed if target not in told]:
        yield f"{spec.about} changed less in {', '.join(left_out)}: --table metrics."
    rest = [each for target, own in by_target.items() if target not in changed for each in own]
    counts, uncertain = Counter(each.report_verdict for each in rest), _add_uncertain(rest)
    others = " in the others" if changed else ""
    if counts["same"]:
        of = format_count(len(rest), "comparison")
        yield f"{spec.about}{others}: the same in {counts['same']} of {of}{uncertain}."
    elif counts["inconclusive"]:
        yet = " yet" if all(each.missing for each in rest) else ""
        of = format_count(len(rest), "comparison")
        why = next((f" ({each.reason})" for each in rest if each.reason), "") if is_counted(spec.name) else ""
        yield f"{spec.about}{others}: nothing decided{yet} in {of}{why}{uncertain}."


def _describe_reach(spec: MetricSpec, comparisons: Sequence[Comparison], *, asked: bool) -> Iterator[str]:
    """Say what rounds that are measured for other metrics could have shown, where they left a comparison open."""
    reach = [each.mde for each in comparisons if each.verdict == "inconclusive" and each.mde is not None]
    if spec.of_openings and reach:
        typical = median(reach)
        size = f"changes beyond {typical:.0%}" if typical <= LARGEST_SHOWN else "changes beyond a factor of two"
        more = "" if asked else f"; --metric {spec.name} measures more rounds for them"
        yield f"{spec.about}: only {size} would have been seen in {format_count(len(reach), 'open comparison')}{more}."


def _size(comparisons: Sequence[Comparison]) -> float:
    """Return the largest distance from no difference, of those that are certain."""
    return max(each.distance for each in comparisons if each.report_verdict in DIFFERENT)


def _of_target(
    spec: MetricSpec, own: Sequence[Comparison], arms: Mapping[ArmKey, ArmResult], names: Mapping[str, str]
) -> str:
    baseline, candidate = (arm.target for arm in own[0].pair.arms)
    more, less = ([each for each in own if each.report_verdict == verdict] for verdict in ("slower", "faster"))
    parts: list[str] = []
    for phrase, found in ((spec.more, more), (spec.less, less)):
        if found:
            against = "" if parts else f" than {baseline}"
            if spec.of_targets:
                parts.append(f"{phrase}{against} ({_figures(spec, found[0], arms)})")
                continue
            of = "" if parts else f" of {format_count(len(own), 'case')}"
            parts.append(f"{phrase}{against} in {len(found)}{of} ({_worst(spec, found, arms, names)})")
    open_ = sum(each.verdict == "inconclusive" for each in own)
    rest = (f"; {open_} inconclusive" if open_ else "") + _add_uncertain(own)
    return f"{candidate} {' and '.join(parts)}{rest}."


def _add_uncertain(comparisons: Sequence[Comparison]) -> str:
    """Return how many differ in their rows only, as in `; 1 not certain among all comparisons`, or ''."""
    uncertain = count_uncertain(comparisons)
    return f"; {uncertain} {UNCERTAIN}" if uncertain else ""


def _worst(
    spec: MetricSpec, found: Sequence[Comparison], arms: Mapping[ArmKey, ArmResult], names: Mapping[str, str]
) -> str:
    """Return the name of the case that differs most, by how much, and from what to what."""
    worst = max(found, key=lambda each: each.distance)
    label = worst.pair.arms[1].case
    most = "most in " if len(found) > 1 else ""
    return f"{most}{names.get(label, label)}, {_figures(spec, worst, arms)}"


def _figures(spec: MetricSpec, comparison: Comparison, arms: Mapping[ArmKey, ArmResult]) -> str:
    """Return by how much two arms differ, and from what to what: `1.56x: 148 MiB to 230 MiB`."""
    estimate = show_estimate(comparison, spec.name)
    old, new = (find_figure(spec, arms.values(), key) for key in comparison.pair.arms)
    if old is None or new is None:
        return estimate
    if spec.units:
        return f"{estimate}: {spec.units.show_figures(comparison.difference or 0.0, old, new)}"
    return f"{estimate}: {spec.show(old)} to {spec.show(new)}"


def describe_other_results(evaluation: Evaluation) -> Iterator[str]:
    """Yield which targets return different results from the baseline, and the command that finds the reason."""
    names = short_names(arm.case for arm in evaluation.arms)
    outputs = [each for each in evaluation.outputs if not each.candidate.control]
    by_target: dict[Target, list[OutputComparison]] = {}
    for each in outputs:
        by_target.setdefault(each.candidate, []).append(each)
    for target, own in by_target.items():
        if differing := [each for each in own if each.verdict == "differs"]:
            worst = max(differing, key=lambda each: math.inf if each.difference is None else each.difference)
            most = "most in " if len(differing) > 1 else ""
            how = _describe_difference(worst)
            yield (
                f"{target} returns different results from {worst.baseline} in {len(differing)} of "
                f"{format_count(len(own), 'case')} ({most}{names.get(worst.case.label, worst.case.label)}: {how})."
            )
    if any(each.verdict == "differs" for each in outputs):
        yield "`tfcompare profile --explain-output` names the first layer of Keras that returns something else."


def _count_results(outputs: Sequence[OutputComparison]) -> Iterator[str]:
    counts = Counter(each.verdict for each in outputs)
    rest = [
        f"{counts[verdict]} {verdict}"
        for verdict in ("equal", "equal within tolerance", "not comparable")
        if counts[verdict]
    ]
    if rest:
        yield f"results of {format_count(len(outputs), 'comparison')}: {', '.join(rest)}."


def _describe_difference(output: OutputComparison) -> str:
    if output.difference is None:
        return output.reason
    least = "" if output.complete else "at least "
    return "; ".join(filter(None, (f"one value by {least}{show_share(output.difference)}", output.reason)))
