"""The assembly of the page, in a separate module because its imports are slow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.model import Comparison, Evaluation, Plan
from orchestrator.plan.pairs import is_trend
from orchestrator.reports import claims, table, trend
from orchestrator.reports.case_names import short_names
from orchestrator.reports.case_rows import (
    CaseBlock,
    block_of_cases,
    block_of_metric,
    block_of_pairs,
    block_of_results,
    further_blocks,
)
from orchestrator.reports.columns import format_estimate, format_interval
from orchestrator.reports.cpu_times import describe_cpu_times
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.goes_with import describe_companions, find_companions
from orchestrator.reports.html import charts, facts
from orchestrator.reports.html.assets import asset, policy, template_environment
from orchestrator.reports.html.calls import Calls
from orchestrator.reports.html.cases import COLUMNS, draw_ratio, name_baseline, sections
from orchestrator.reports.html.escape import escape_value, script_data
from orchestrator.reports.html.rows import (
    ARM_COLUMNS,
    COMPARISON_COLUMNS,
    MEASURED_COLUMNS,
    RANKED,
    VERDICTS,
    Names,
    TableRow,
    arm_row,
    comparison_row,
    fit_columns,
)
from orchestrator.reports.matrix import describe_compared
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.steps import describe_losses
from orchestrator.reports.summary import by_candidate, sentences
from orchestrator.results.run import Run

FOLDER = Path(__file__).parent
NOTHING_MEASURED = "Nothing was compared."
# A picture of more ratios would be longer than any screen.
MOST_PLOTTED = 200


def render_page(run: Run, calls: Calls) -> str:
    evaluation = run.evaluation
    names = Names.of(arm.case for arm in evaluation.arms)
    courses = calls.courses(replicate.number for replicate in run.replicates)
    cases = sections(evaluation, run.replicates, courses, names)
    comparisons, baseline = by_candidate(evaluation.comparisons), evaluation.plan.targets[0]
    rows = [arm_row(arm, comparisons.get(arm.key), baseline, names) for arm in evaluation.arms]
    words = {row.verdict.word for row in rows} | {each.shown_verdict for each in evaluation.comparisons}
    style, script = asset("page.css"), asset("page.js")
    targets = evaluation.plan.targets
    judged = claims.judge_planned_claims(evaluation) if evaluation.plan.claims else ()
    blocks = _blocks(evaluation)
    return (
        template_environment(FOLDER)
        .get_template("page.html.j2")
        .render(
            policy=policy(style, script),
            style=style,
            script=script,
            title=_title(evaluation.plan),
            run=evaluation.plan.run,
            created=evaluation.plan.created,
            facts=table.describe_measurement(evaluation),
            summary=_summary(evaluation) or [NOTHING_MEASURED],
            warnings=[*evaluation.broken, *evaluation.warnings],
            rows=rows,
            columns=fit_columns(ARM_COLUMNS, evaluation.plan),
            tables=_build_other_tables(evaluation, names),
            workloads=list(dict.fromkeys(row.workload for row in rows)),
            targets=targets,
            baseline=name_baseline(evaluation.plan),
            # The page can be filtered by these.
            verdicts=[word for word in RANKED if word in words],
            cases=cases,
            case_columns=fit_columns(COLUMNS, evaluation.plan),
            data={case.anchor: script_data(escape_value(case.data)) for case in cases},
            claims=judged,
            claims_summary=claims.summarize_claims(judged),
            claim_texts=claims,
            blocks=blocks,
            anchors=names.anchors,
            alpha=evaluation.plan.alpha,
            format_estimate=format_estimate,
            format_interval=format_interval,
            overview=_overview(evaluation, names, blocks),
            missing=_find_unmeasured_arms(evaluation, rows),
            seed=evaluation.plan.seed,
            host=facts.host(evaluation.manifest),
            setting=facts.setting(evaluation),
            environments=facts.environments(evaluation),
            command=facts.command(evaluation.manifest),
        )
    )


def _blocks(evaluation: Evaluation) -> list[CaseBlock]:
    """Return the tables that compare targets, cases inside targets, each changed metric, and results that differ."""
    arrangement = Arrangement()
    blocks = [
        block_of_cases(evaluation, arrangement),
        *further_blocks(evaluation, arrangement),
        block_of_pairs(evaluation, arrangement),
    ]
    for metric, comparisons in evaluation.metrics.items():
        if any(comparison.verdict in ("slower", "faster") for comparison in comparisons):
            blocks.append(block_of_metric(evaluation, metric))
    if any(output.verdict == "differs" for output in evaluation.outputs):
        blocks.append(block_of_results(evaluation))
    return [block for block in blocks if block.targets]


def _build_other_tables(evaluation: Evaluation, names: Names) -> list[dict[str, Any]]:
    """Return the tables of comparisons other than those between the versions' times."""
    inside = [comparison for comparison in evaluation.comparisons if comparison.pair.kind == "case"]
    other = [
        comparison
        for comparison in evaluation.comparisons
        if comparison.pair.kind == "target" and not comparison.pair.across
    ]
    other += evaluation.of_metrics
    tables = (("inside", "Inside each target", inside), ("measures", "Other measures", other))
    return [
        {
            "id": id,
            "title": title,
            "columns": _columns(comparisons),
            "rows": [comparison_row(each, names) for each in comparisons],
        }
        for id, title, comparisons in tables
        if comparisons
    ]


def _find_unmeasured_arms(evaluation: Evaluation, rows: list[TableRow]) -> list[dict[str, Any]]:
    """Return the arms that did not finish, even those that were partly measured."""
    return [
        {"row": row, "outcome": VERDICTS[arm.outcome], "reason": arm.reason}
        for arm, row in zip(evaluation.arms, rows, strict=True)
        if arm.outcome != "measured"
    ]


def _columns(comparisons: list[Comparison]) -> Any:
    return (
        MEASURED_COLUMNS if any(comparison.pair.metric != "time" for comparison in comparisons) else COMPARISON_COLUMNS
    )


def _overview(evaluation: Evaluation, names: Names, blocks: Sequence[CaseBlock]) -> dict[str, Any] | None:
    """Return the ratio of each case and version in the order of the matrix, or None if there are too many or none."""
    timed = [
        comparison for comparison in evaluation.comparisons if comparison.pair.across and comparison.ratio is not None
    ]
    if not 0 < len(timed) <= MOST_PLOTTED:
        return None
    counts = {word: sum(comparison.shown_verdict == word for comparison in timed) for word in VERDICTS}
    listing = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    # The steps of a program are a second row with the same label.
    order = list(dict.fromkeys(row.label for block in blocks[:1] for row in block.ranked))
    titles = short_names(names.cases.values())
    drawn = sorted(timed, key=lambda each: order.index(each.pair.arms[1].case))
    ratios = [
        draw_ratio(each, titles[each.pair.arms[1].case], each.pair.margin or evaluation.plan.margin) for each in drawn
    ]
    return {
        "label": f"Ratios of {len(timed)} comparisons with the baseline: {listing}. The tables hold them all.",
        "drawing": charts.draw_overview(ratios, [str(each.pair.arms[1].target) for each in drawn]),
    }


def _title(plan: Plan) -> str:
    baseline, *others = map(str, plan.targets)
    if is_trend(plan):
        return f"{others[0]} to {others[-1]}, {len(others)} versions, against {baseline}"
    return describe_compared(plan)


def _summary(evaluation: Evaluation) -> Sequence[str]:
    """Return one sentence per version or, for many versions, one per case about the steps between neighbours."""
    facts = [f"{line[0].upper()}{line[1:]}." for line in describe_companions(find_companions(evaluation))]
    if not is_trend(evaluation.plan):
        losses = (f"{line}." for line in describe_losses(evaluation))
        more = (f"{line[0].upper()}{line[1:]}" for line in (*metric_sentences(evaluation), *losses))
        return [*sentences(evaluation), *facts, *more, *describe_cpu_times(evaluation)]
    steps = (f"{case.label}: {trend.summarize_trend(points)}" for case, points in trend.points(evaluation).items())
    return [*steps, *facts]
