"""A search as one HTML file that needs nothing but a browser: it has no script, and the plot is drawn into it."""

from pathlib import Path

from markupsafe import Markup

from orchestrator.bisect.report import RATIO, PathRow, describe_search, name_figure, path_rows
from orchestrator.bisect.search import SearchResult
from orchestrator.bisect.state import State, Step
from orchestrator.bisect.wording import conclusions
from orchestrator.metrics.followed import describe_followed
from orchestrator.reports.columns import MARKS
from orchestrator.reports.html.answer import AnswerPage, PageFigure, PageLine, PageTable, render_answer
from orchestrator.reports.html.charts import DrawnRatio, DrawnStep, draw_trend
from orchestrator.reports.html.rows import TableColumn
from orchestrator.terminal import output_file

PAGE = "report.html"
CAPTION = (
    "Ratio of the {about} to {first}, on a log scale, for every version that was measured. Only versions of one run "
    "have a measured ratio; other ratios are products over the runs in between, with joined intervals. A dashed "
    "line separates two versions that differ, both measured in one run."
)


STEP_COLUMNS = (
    TableColumn("step", "Step"),
    TableColumn("versions", "Versions"),
    TableColumn("kind", "Kind"),
    TableColumn("took", "Took", True),
    TableColumn("told", "Result"),
    TableColumn("run", "Run"),
)


def write_page(state: State, result: SearchResult, folder: Path) -> Path:
    path = folder / PAGE
    output_file.write_output(path, render_search(state, result), "--output", within=True)
    return path


def render_search(state: State, result: SearchResult) -> str:
    question, found = state.question, conclusions(state, result)
    figures = []
    if result.overall and name_figure(question.metric) == RATIO:
        about = describe_followed(question.metric, question.run.judge)
        caption = CAPTION.format(about=about, first=question.good)
        figures.append(PageFigure("Ratios", _plot(state, result), caption, " ".join(found)))
    return render_answer(
        AnswerPage(
            command="bisect",
            title=f"{state.case.workload} from {question.good} to {question.bad}",
            case=state.case.label,
            created=state.created,
            facts=describe_search(state),
            conclusions=found,
            notes=[
                *(f"{skipped.version} was left out: {skipped.reason}" for skipped in state.skipped.values()),
                *state.notes,
            ],
            figures=figures,
            tables=_tables(state, result),
        )
    )


def _plot(state: State, result: SearchResult) -> Markup:
    ratios, steps = [], []
    for row in path_rows(state, result):
        if row.joined:
            figures = (row.joined.ratio, row.joined.ci_low, row.joined.ci_high)
            ratios.append(DrawnRatio(row.version, *figures, row.finding.shown_verdict if row.finding else "same"))
        else:
            ratios.append(DrawnRatio(row.version))
        if row.part and row.finding and row.finding.changed:
            steps.append(DrawnStep(row.part.earlier, row.version, row.finding.ratio or 1.0, row.finding.verdict))
    return draw_trend(ratios, steps)


def _tables(state: State, result: SearchResult) -> list[PageTable]:
    figure = name_figure(state.question.metric)
    return [
        PageTable(
            "Versions measured",
            (
                TableColumn("version", "Version"),
                TableColumn("ratio", f"{figure.capitalize()} to {state.question.good}", True),
                TableColumn("interval", "Interval", True),
                TableColumn("step", "Step", True),
                TableColumn("step-interval", "Interval", True),
                TableColumn("verdict", "Verdict"),
                TableColumn("share", "Share", True),
                TableColumn("between", "Between, not measured"),
            ),
            tuple(map(_version_line, path_rows(state, result))),
        ),
        PageTable("Steps", STEP_COLUMNS, tuple(_step_line(number, step) for number, step in enumerate(state.steps, 1))),
    ]


def _version_line(row: PathRow) -> PageLine:
    verdict = row.finding.shown_verdict if row.finding else ""
    cells = (
        row.version,
        row.ratio_text,
        row.interval_text,
        row.step_ratio_text,
        row.step_interval_text,
        f"{MARKS[row.finding.shown_verdict]} {row.finding.words}" if row.finding else "",
        row.share_text,
        ", ".join(row.between),
    )
    return PageLine(cells, verdict.replace(" ", "-"))


def _step_line(number: int, step: Step) -> PageLine:
    results = [f"{finding.later} against {finding.earlier}: {finding.words}" for finding in step.findings]
    results += [f"{skipped.version}: {skipped.reason}" for skipped in step.skipped]
    cells = (
        str(number),
        " ".join(step.versions),
        step.kind,
        f"{step.seconds:.0f} s",
        "; ".join(results),
        step.run or "",
    )
    return PageLine(cells)
