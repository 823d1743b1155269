"""Reports of a judged run: one file per table or format, and one line per report here.

A report's module is imported only when the report is made, because the command line reads these lines for its help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from orchestrator.model import Evaluation, Plan
    from orchestrator.reports.filter_sort import Arrangement
    from orchestrator.results.run import Run


@dataclass(frozen=True, kw_only=True)
class Report:
    """A table of a run, for people and for programs."""

    name: str
    # The help of `--table` shows this clause.
    about: str
    # This module has `layout(evaluation, width)`, which also gets `arrangement` and `columns` if it takes them.
    module: str
    arranged: bool = False
    takes_columns: bool = False
    # This module has `as_json(evaluation)`, if the report is also for programs.
    json: str = ""
    # Its JSON can be the default for programs only if it holds all of a run.
    complete: bool = False
    # This decides whether a run is usually read in this report.
    suits: Callable[[Plan], bool] = lambda plan: False

    def layout(
        self, evaluation: Evaluation, width: int, columns: tuple[str, ...] | None, arrangement: Arrangement
    ) -> RenderableType:
        chosen: dict[str, object] = {"arrangement": arrangement} if self.arranged else {}
        chosen |= {"columns": columns} if self.takes_columns else {}
        return cast("RenderableType", import_module(self.module, __name__).layout(evaluation, width, **chosen))

    def as_json(self, evaluation: Evaluation) -> str:
        return str(import_module(self.json, __name__).as_json(evaluation))


@dataclass(frozen=True)
class Page:
    """A report that shows more of a run than its comparison.

    `name` is the file in the run folder that it is written to; without a name it goes to stdout.
    """

    make: Callable[[Path], tuple[str, Run]]
    name: str | None = None


def _html(path: Path) -> tuple[str, Run]:
    from orchestrator.reports import html

    return html.make_page(path)


def _is_trend(plan: Plan) -> bool:
    from orchestrator.plan.pairs import is_trend

    return is_trend(plan)


DEFAULT, DETAILS, METRICS = "verdicts", "details", "metrics"
# The first report that suits a run is its usual one; if none does, it is the default.
REPORTS: dict[str, Report] = {
    report.name: report
    for report in (
        Report(
            name=DEFAULT, about="one row per case, one column per version", module=".matrix", arranged=True,
            json=".json",
        ),
        Report(
            name=DETAILS, about="one line per comparison", module=".table", arranged=True, takes_columns=True,
            json=".json",
        ),
        Report(
            name="claims", about="published claims, and whether they hold", module=".claims", json=".claims",
            complete=True, suits=lambda plan: bool(plan.claims),
        ),
        Report(name="study", about="training loops, laid out as in the published study", module=".study"),
        Report(name=METRICS, about="memory, first calls and results", module=".metrics"),
        Report(
            name="trend", about="one line per version", module=".trend", json=".trend", suits=_is_trend
        ),
    )
}  # fmt: skip
PAGES: Mapping[str, Page] = {"html": Page(_html, "report.html")}
FORMATS = ("table", "json", *PAGES)


def usual_report(plan: Plan, *, complete: bool) -> Report:
    """Return the report that a run is usually read in; with `complete`, only complete reports count."""
    return next(
        (report for report in REPORTS.values() if report.suits(plan) and (report.complete or not complete)),
        REPORTS[DEFAULT],
    )
