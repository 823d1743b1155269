"""A search as one HTML file that needs nothing but a browser: it has no script, and the plot is drawn into it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import vl_convert

from orchestrator.bisect.joined_ratios import join_ratios
from orchestrator.bisect.report import facts, path_steps
from orchestrator.bisect.search import Found
from orchestrator.bisect.state import State
from orchestrator.bisect.wording import conclusions, share
from orchestrator.reports.columns import MARKS, interval, ratio
from orchestrator.reports.html import charts, document
from orchestrator.reports.html.assets import asset, policy
from orchestrator.reports.html.escape import escape_value, round_figure
from orchestrator.terminal import output_file

PAGE = "report.html"
WIDTH_PX = 900


@dataclass(frozen=True)
class PageLine:
    cells: tuple[str, ...]
    verdict: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page; `figures` are the positions of columns with figures, `judged` that of a verdict."""

    title: str
    headers: tuple[str, ...]
    figures: tuple[int, ...]
    rows: tuple[PageLine, ...]
    judged: int = -1


def write(known: State, found: Found, folder: Path) -> Path:
    path = folder / PAGE
    output_file.write(path, render(known, found), "--out", within=True)
    return path


def render(known: State, found: Found) -> str:
    style = asset("page.css")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    question = known.question
    steps = f"{question.good} to {question.bad}"
    return environment.get_template("page.html.j2").render(
        policy=policy(style),
        style=style,
        title=escape_value(f"{known.case.workload} from {steps}"),
        case=escape_value(known.case.label),
        created=known.created,
        facts=escape_value(facts(known)),
        conclusions=[escape_value(line) for line in conclusions(known, found)],
        notes=[
            *(escape_value(f"{one.version} was left out: {one.reason}") for one in known.skipped.values()),
            *map(escape_value, known.notes),
        ],
        first=escape_value(question.good),
        plot=_plot(known, found) if found.whole else "",
        label=escape_value(" ".join(conclusions(known, found))),
        tables=_tables(known, found),
    )


def _plot(known: State, found: Found) -> str:
    """Draw the plot here, because pages on paper or in mail run no script."""
    places = join_ratios(known.question.good, known.findings)
    trend: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for version, part in path_steps(found):
        at = places.get(version)
        row: dict[str, Any] = {"version": escape_value(version)}
        if at:
            row |= {"ratio": round_figure(at.ratio), "low": round_figure(at.ci_low), "high": round_figure(at.ci_high)}
            row["verdict"] = part.finding.verdict if part and part.finding else "same"
        trend.append(row)
        if part and part.finding and part.finding.changed:
            steps.append(
                {
                    "version": escape_value(version),
                    "before": escape_value(part.earlier),
                    "verdict": part.finding.verdict,
                }
            )
    spec = charts.trend().properties(width=WIDTH_PX).configure(**charts.CONFIG).to_dict()
    spec["datasets"] = {"trend": trend, "steps": steps, "one": [{"ratio": 1}]}
    return str(vl_convert.vegalite_to_svg(spec, vl_version=document.vega_lite()))


def _tables(known: State, found: Found) -> list[Table]:
    places = join_ratios(known.question.good, known.findings)
    way, steps = [], []
    for version, part in path_steps(found):
        at, finding = places.get(version), part.finding if part else None
        of = share(part, found.whole) if part else None
        figures = (ratio(at.ratio), interval(at) if at.over else "") if at else ("", "")
        step = (ratio(finding.ratio) if finding and finding.ratio else "", interval(finding) if finding else "")
        word = f"{MARKS[finding.verdict]} {finding.verdict}" if finding else ""
        between = ", ".join(part.inside) if part else ""
        way.append(
            PageLine(
                tuple(
                    map(
                        escape_value,
                        (
                            version,
                            *figures,
                            *step,
                            word,
                            f"{of:.0%}" if of is not None and finding and finding.changed else "",
                            between,
                        ),
                    )
                ),
                finding.verdict if finding else "",
            )
        )
    for number, done in enumerate(known.steps, 1):
        told = [f"{one.later} against {one.earlier}: {one.verdict}" for one in done.findings]
        told += [f"{one.version}: {one.reason}" for one in done.skipped]
        took = f"{done.seconds:.0f} s"
        cells = (str(number), " ".join(done.versions), done.kind, took, "; ".join(told), done.run or "")
        steps.append(PageLine(tuple(map(escape_value, cells))))
    return [
        Table(
            "Versions visited",
            (
                "Version",
                f"Ratio to {escape_value(known.question.good)}",
                "Interval",
                "Step",
                "Interval",
                "Verdict",
                "Share",
                "Between, not visited",
            ),
            (1, 2, 3, 4, 6),
            tuple(way),
            judged=5,
        ),
        Table("Steps", ("Step", "Versions", "Kind", "Took", "Told", "Run"), (3,), tuple(steps)),
    ]
