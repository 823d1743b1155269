"""Explains the verdicts of a case in sentences: what was measured, which rule applied, and what would decide it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.catalog import did_you_mean
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.metrics import METRICS, find_margin
from orchestrator.metrics.followed import describe_change
from orchestrator.model import ArmResult, Comparison, Evaluation, OutputComparison
from orchestrator.reports.columns import STYLES
from orchestrator.reports.json import pair_object, run_object
from orchestrator.reports.magnitudes import show_estimate, show_interval
from orchestrator.results.sketches import show_share
from orchestrator.stats.slowdown import format_slowdown
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.explanation/1"


@dataclass(frozen=True, kw_only=True)
class VerdictExplanation:
    """A verdict of a case, and the sentences that explain it."""

    comparison: Comparison
    subject: str
    sentences: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The verdict as reports show it."""
        slight, shown = "slightly ", self.comparison.shown_verdict
        word = describe_change(self.comparison.pair.metric, shown.removeprefix(slight))
        return f"{slight}{word}" if shown.startswith(slight) else word


@dataclass(frozen=True, kw_only=True)
class CaseExplanation:
    """All that a run says about a case; `command` continues the run, or is ''."""

    evaluation: Evaluation
    case: str
    verdicts: tuple[VerdictExplanation, ...]
    others: tuple[str, ...]
    command: str


def explain_case(evaluation: Evaluation, name: str, command: str) -> CaseExplanation:
    """Explain each verdict of a case, given by its label, or by its workload if that has one case in the run."""
    labels = [case.label for case in evaluation.plan.cases]
    found = [case.label for case in evaluation.plan.cases if name in (case.label, case.workload)]
    if not found:
        raise NothingSelected(f"the run has no case {name!r}{did_you_mean(name, labels)}")
    if len(found) > 1:
        raise UsageError(f"{name} has {len(found)} cases in the run: name one, e.g. --explain '{found[0]}'")
    (label,) = found
    # Where a run has three versions, a step between neighbours may also be a comparison.
    of_case = (each for each in evaluation.of_all if label in {arm.case for arm in each.pair.arms})
    own = list({(each.pair.arms, each.pair.metric): each for each in of_case}.values())
    return CaseExplanation(
        evaluation=evaluation,
        case=label,
        verdicts=tuple(
            VerdictExplanation(
                comparison=each, subject=_describe_pair(each), sentences=tuple(_explain(each, evaluation))
            )
            for each in own
        ),
        others=(
            *(_explain_arm(arm) for arm in evaluation.arms if arm.case.label == label and arm.outcome != "measured"),
            *(_explain_output(output) for output in evaluation.outputs if output.case.label == label),
        ),
        command=command if any(each.verdict == "inconclusive" for each in own) else "",
    )


def layout(explained: CaseExplanation) -> RenderableType:
    lines: list[RenderableType] = [safe_text(explained.case, style="bold")]
    for each in explained.verdicts:
        style = STYLES[each.comparison.shown_verdict]
        lines += [Text(), Text.assemble(safe_text(f"{each.subject}: "), (each.verdict, style))]
        lines += [safe_text(f"  {sentence}") for sentence in each.sentences]
    if explained.others:
        lines += [Text(), *map(safe_text, explained.others)]
    if explained.command:
        lines += [Text(), safe_text(f"Next:  {explained.command}")]
    return Group(*lines)


def as_object(explained: CaseExplanation) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run_object(explained.evaluation),
        "case": explained.case,
        "verdicts": [
            {
                **pair_object(each.comparison.pair),
                **pick(each.comparison, "verdict size exploratory row_only rounds"),
                "shown": each.verdict,
                "sentences": list(each.sentences),
            }
            for each in explained.verdicts
        ],
        "others": list(explained.others),
        "next": explained.command or None,
    }


def _describe_pair(comparison: Comparison) -> str:
    (first, old), (second, new) = comparison.pair.arms
    about = METRICS[comparison.pair.metric].about
    if comparison.pair.kind == "case":
        return f"{second} against {first} in {new}, {about}"
    return f"{new} against {old}, {about}"


def _explain(comparison: Comparison, evaluation: Evaluation) -> Iterator[str]:
    pair, plan = comparison.pair, evaluation.plan
    spec = METRICS[pair.metric]
    if comparison.missing:
        yield f"{comparison.so_far[0].upper()}{comparison.so_far[1:]}."
        return
    if comparison.ends is None:
        yield f"There is no interval{f': {comparison.reason}' if comparison.reason else ''}."
        return
    amount = find_margin(plan, pair.metric) if pair.margin is None else pair.margin
    margin = spec.units.show(amount) if spec.units else f"{amount * 100:g} %"
    what = "difference" if spec.units else "ratio"
    estimate, interval = show_estimate(comparison, pair.metric), show_interval(comparison, pair.metric)
    if spec.exact:
        yield f"It is counted and not timed, so the {what} is exact: {estimate}. The margin is {margin}."
    else:
        yield (
            f"The {what} is {estimate} (interval {interval}), from {comparison.rounds} rounds. Both sides ran in new "
            "processes in each round."
        )
        yield _describe_rule(comparison, margin, "0" if spec.units else "1")
    if comparison.verdict == "inconclusive":
        yield from _explain_open(comparison)
    elif comparison.exploratory:
        yield "It is exploratory, because rounds were added after the planned ones: only a new run can confirm it."
    elif comparison.verdict == "same" and not spec.exact:
        yield "In 95 % of runs, such an interval holds the true value."
    elif not spec.exact:
        yield f"If both were equal, at most 2.5 % of runs would call one of them {spec.worse} or {spec.better}."
    if comparison.row_only:
        yield (
            f"Chance may explain it, because the run makes {evaluation.judged_together} comparisons. Sentences about "
            "the whole report do not mention it, and --fail-on counts it as inconclusive. To decide it, measure this "
            "case alone."
        )


def _describe_rule(comparison: Comparison, margin: str, none: str) -> str:
    if comparison.verdict == "inconclusive":
        return f"The interval leaves both open: no difference, and one beyond the margin of {margin}."
    if comparison.size == "slight":
        return f"The interval excludes {none} and lies inside the margin of {margin}: certain, and too small to count."
    if comparison.size == "clear":
        return (
            f"The interval excludes {none} and reaches into the margin of {margin}: there is certainly a difference, "
            "but it may be smaller than the margin."
        )
    if comparison.size == "beyond":
        return f"The whole interval is outside of the margin of {margin}."
    return f"The interval contains {none} and lies inside the margin of {margin}."


def _explain_open(comparison: Comparison) -> Iterator[str]:
    if comparison.reason:
        yield f"The reason: {comparison.reason}."
    if comparison.mde is not None:
        yield f"These rounds would typically detect only a slowdown of {format_slowdown(comparison.mde)} or more."
    if comparison.is_decided_by_cpu:
        yield f"CPU times alone have a verdict: {comparison.cpu_verdict} ({comparison.cpu_ratio:.3g}x)."


def _explain_arm(arm: ArmResult) -> str:
    return f"{arm.target}: {arm.ending}{f': {arm.reason}' if arm.reason else ''}"


def _explain_output(output: OutputComparison) -> str:
    parts: Sequence[str] = [
        f"results of {output.candidate} against {output.baseline}: {output.verdict}",
        "" if output.difference is None else f"the largest difference of a value is {show_share(output.difference)}",
        "" if output.floor is None else f"replicates of one version differ by {show_share(output.floor)}",
        output.reason,
    ]
    return "; ".join(filter(None, parts))
