"""An answer as one HTML file: what was found, the rungs as a plot, and the flame graph of the largest one."""

from pathlib import Path

from orchestrator.errors import TfCompareError
from orchestrator.metrics.followed import RESULTS, describe_followed
from orchestrator.profiling.stored import read_profile
from orchestrator.reports.columns import MARKS
from orchestrator.reports.html.answer import AnswerPage, PageFigure, PageLine, PageTable, render_answer
from orchestrator.reports.html.charts import DrawnRatio, draw_forest
from orchestrator.reports.html.rows import TableColumn
from orchestrator.reports.html.svg import element
from orchestrator.reports.magnitudes import show_estimate, show_interval
from orchestrator.terminal import output_file
from orchestrator.why.flame import draw_flames, merge_stacks
from orchestrator.why.report import WhyAnswer, describe_measuring, list_commands, tell_answer, tell_whole

PAGE = "report.html"
RUNG_COLUMNS = (
    TableColumn("changed", "Changed"),
    TableColumn("figure", "Figure", True),
    TableColumn("interval", "Interval", True),
    TableColumn("verdict", "Verdict"),
    TableColumn("share", "Share", True),
    TableColumn("lower", "From"),
    TableColumn("upper", "To"),
)
REMEDY_COLUMNS = (
    TableColumn("target", "Target"),
    TableColumn("claim", "Claim"),
    TableColumn("new", "Against the new target", True),
    TableColumn("verdict", "Verdict"),
    TableColumn("old", "Old target against it", True),
)


def write_why_page(answer: WhyAnswer) -> Path:
    path = answer.outcome.path / PAGE
    output_file.write_output(path, render_why_page(answer), "--output", within=True)
    return path


def render_why_page(answer: WhyAnswer) -> str:
    old, new = answer.names
    return render_answer(
        AnswerPage(
            command="why",
            title=f"{answer.state.case.workload}: {new} against {old}",
            case=answer.state.case.label,
            created=answer.state.created,
            facts=describe_measuring(answer),
            conclusions=[
                tell_whole(answer),
                *tell_answer(answer),
                *(f"next: {command}" for command in list_commands(answer)),
            ],
            notes=answer.state.notes,
            figures=[*_draw_rungs(answer), *_draw_profile(answer)],
            tables=_tables(answer),
        )
    )


def _draw_rungs(answer: WhyAnswer) -> list[PageFigure]:
    drawn = [
        DrawnRatio(
            rung.rung.title, rung.finding.ratio, rung.finding.ci_low, rung.finding.ci_high, rung.finding.shown_verdict
        )
        for rung in answer.explanation.rungs
        if rung.finding and rung.finding.ratio and rung.finding.ci_low
    ]
    if not drawn:
        return []
    about = describe_followed(answer.state.question.metric, answer.state.question.run.judge)
    caption = (
        f"What each change does to the {about}, on a log scale. Each was measured in the same rounds as its neighbour."
    )
    # Changes have longer names than versions.
    plot = element("div", draw_forest(drawn, "ratio"), class_="wide")
    return [PageFigure("Changes", plot, caption, "; ".join(each.told for each in drawn))]


def _draw_profile(answer: WhyAnswer) -> list[PageFigure]:
    if not answer.state.profile:
        return []
    try:
        arms = read_profile(answer.outcome.path / answer.state.profile).arms
    except TfCompareError:
        return []
    profiles = [arm.profile for arm in arms if arm.profile]
    if len(profiles) != 2:
        return []
    caption = (
        f"Where a call of {arms[1].target} spends its time under a tracer, which slows Python code down. What takes "
        f"longer than in {arms[0].target} has a colour. The title of each function has both times."
    )
    return [PageFigure("Where", draw_flames(merge_stacks(*profiles)), caption, "; ".join(answer.functions))]


def _tables(answer: WhyAnswer) -> list[PageTable]:
    metric = answer.state.question.metric
    rungs = []
    for rung in answer.explanation.rungs:
        finding, share = rung.finding, answer.explanation.share(rung)
        cells = (
            rung.rung.title,
            "" if finding is None or metric == RESULTS else show_estimate(finding, metric),
            "" if finding is None else show_interval(finding, metric),
            "died" if rung.death else f"{MARKS[finding.shown_verdict]} {finding.words}" if finding else "not measured",
            "" if share is None else f"{share:.0%}",
            rung.lower,
            rung.upper,
        )
        verdict = "died" if rung.death else finding.shown_verdict if finding else ""
        rungs.append(PageLine(cells, verdict.replace(" ", "-")))
    tables = [PageTable("Changes", RUNG_COLUMNS, tuple(rungs))]
    if answer.remedies:
        tables.append(
            PageTable(
                "What was tried",
                REMEDY_COLUMNS,
                tuple(
                    PageLine(
                        (
                            remedy.text,
                            remedy.claim,
                            show_estimate(remedy.to_new, metric),
                            f"{MARKS[remedy.to_new.shown_verdict]} {remedy.to_new.words}",
                            show_estimate(remedy.to_old, metric) if remedy.to_old else "",
                        ),
                        remedy.to_new.shown_verdict.replace(" ", "-"),
                    )
                    for remedy in answer.remedies
                ),
            )
        )
    return tables
