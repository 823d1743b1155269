"""A comment for a pull request: one line per version, what changed most, and the rest folded away."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.exports.common import python_of, verdict
from orchestrator.model import ArmResult, Comparison, Evaluation, Target
from orchestrator.reports.case_names import by_workload, short_names, split_params
from orchestrator.reports.claims import judge_planned_claims, subject_of_pair, summarize_claims
from orchestrator.reports.columns import MARKS
from orchestrator.reports.cpu_times import describe_cpu_times
from orchestrator.reports.magnitudes import show_figures
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.reasons import UNCERTAIN, describe_in_report
from orchestrator.reports.table import describe_measurement
from orchestrator.results.run import Run
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.markdown import build_table, code, join_lines

MOST_ROWS = 20

CHANGED = ("case", "target", "time", "ratio", "interval", "verdict")
COMPARISONS = ("comparison", "ratio or difference", "interval", "rounds", "verdict", "why")
UNMEASURED = ("case", "target", "outcome", "why")
ENVIRONMENTS = ("target", "Python", "environment")


def render(run: Run) -> str:
    evaluation = run.evaluation
    unmeasured = [arm for arm in evaluation.arms if arm.outcome != "measured"]
    parts = [
        "### tfcompare",
        join_lines(_headlines(evaluation)),
        _list_shared_parameters(evaluation),
        _first_warning(run.warnings),
        _table_of_changes(evaluation),
        "<details><summary>All comparisons, what was not measured, warnings, machine and command</summary>",
        build_table(COMPARISONS, map(_comparison, (*evaluation.comparisons, *evaluation.of_metrics))),
        build_table(
            UNMEASURED,
            ((code(arm.case.label), code(str(arm.target)), arm.outcome, code(arm.reason)) for arm in unmeasured),
        ),
        join_lines(f"- warning: {code(text)}" for text in run.warnings),
        f"{code(describe_measurement(evaluation))}, run {code(run.plan.run)}, tfcompare {code(run.manifest.tool)}",
        build_table(ENVIRONMENTS, _environments(run)),
        code(shlex.join(["tfcompare", *run.manifest.command])),
        "</details>",
    ]
    return "\n\n".join(part for part in parts if part)


def _headlines(evaluation: Evaluation) -> Iterable[str]:
    """Yield the verdicts of each version against each version that it is compared with."""
    if evaluation.plan.claims:
        yield f"- {summarize_claims(judge_planned_claims(evaluation))}"
    counts: dict[tuple[Target, Target], Counter[str]] = {}
    for comparison in evaluation.comparisons:
        pair = comparison.pair
        if pair.kind == "target":
            word = describe_in_report(comparison)
            counts.setdefault((pair.candidate, pair.baseline), Counter())[word] += 1
    for (candidate, baseline), count in counts.items():
        verdicts = ", ".join(f"{count[name]} {name}" for name in (*MARKS, UNCERTAIN) if count[name])
        by = ", by CPU time" if evaluation.plan.judge == "cpu" else ""
        yield f"- {code(str(candidate))} against {code(str(baseline))}{by}: {verdicts}."
    yield from (f"- {code(each)}" for each in (*metric_sentences(evaluation), *describe_cpu_times(evaluation)))


def _first_warning(warnings: Sequence[str]) -> str:
    """Show the first warning, which is the most serious, outside the folded part."""
    if not warnings:
        return ""
    others = f" (and {len(warnings) - 1} more, below)" if len(warnings) > 1 else ""
    return f"**warning:** {code(warnings[0])}{others}"


def _list_shared_parameters(evaluation: Evaluation) -> str:
    """List the parameters that all cases of a workload share, since the names of cases leave them out."""
    parts = []
    for workload, cases in by_workload(arm.case for arm in evaluation.arms).items():
        shared, _, _ = split_params(cases)
        if shared and len(cases) > 1:
            parts.append(code(f"{workload}: {shared}"))
    return f"Shared by all cases of a workload: {', '.join(parts)}." if parts else ""


def _table_of_changes(evaluation: Evaluation) -> str:
    names = short_names(arm.case for arm in evaluation.arms)
    arms = {arm.key: arm for arm in evaluation.arms}
    changed = [
        comparison
        for comparison in evaluation.comparisons
        if comparison.pair.kind == "target" and comparison.report_verdict in ("slower", "faster")
    ]
    changed.sort(key=lambda comparison: comparison.distance, reverse=True)
    if not changed:
        return "Nothing is shown to be slower or faster."
    header = [f"CPU {name}" if name == "time" and evaluation.plan.judge == "cpu" else name for name in CHANGED]
    table = build_table(
        header, (_change(comparison, arms[comparison.pair.arms[1]], names) for comparison in changed[:MOST_ROWS])
    )
    remaining = len(changed) - MOST_ROWS
    return f"{table}\n\n{remaining} more are slower or faster, but by less; see below." if remaining > 0 else table


def _change(comparison: Comparison, arm: ArmResult, names: Mapping[str, str]) -> tuple[str, ...]:
    metric = "" if comparison.pair.metric == "time" else f" {comparison.pair.metric}"
    time = "" if arm.time_ms is None else format_time(arm.time_ms)
    case, target = code(names[arm.case.label]) + metric, code(str(arm.target))
    return case, target, time, *show_figures(comparison), _verdict(comparison)


def _comparison(comparison: Comparison) -> tuple[str, ...]:
    return (
        code(subject_of_pair(comparison.pair)),
        *show_figures(comparison),
        str(comparison.rounds),
        _verdict(comparison),
        code(comparison.reason),
    )


def _verdict(comparison: Comparison) -> str:
    return f"{MARKS[comparison.shown_verdict]} {verdict(comparison)}"


def _environments(run: Run) -> Iterable[tuple[str, ...]]:
    for target in run.plan.targets:
        facts = run.manifest.environments.get(target)
        named = code(f"{facts.kind} {facts.identity}") if facts else "none"
        yield code(str(target)), code(python_of(run, target) or "unknown"), named
