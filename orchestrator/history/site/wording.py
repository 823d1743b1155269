"""The words on the pages: figures, alarms, steps, and the path of a case's page."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from orchestrator.history.alarms.opened import COMMITS
from orchestrator.history.alarms.state import is_open_alarm
from orchestrator.history.model import Alarm, Change, Key
from orchestrator.history.wording import describe_alarm, describe_cause, describe_evidence, describe_size
from orchestrator.metrics import METRICS, TIMES
from orchestrator.metrics.followed import RESULTS, Followed
from orchestrator.reports.columns import MARKS

MOST_SLUG = 60
COMMITS_PAGE = re.compile(re.escape(COMMITS).replace(r"\{\}", r"[\w.-]+"), re.ASCII)
OPEN_SIGN, CLOSED_SIGN = "◆", "◇"
UNITS = (("s", 1e3), ("ms", 1.0), ("µs", 1e-3))


@dataclass(frozen=True, kw_only=True)
class AlarmDescription:
    """An alarm in words; `page` is empty if the history has no point of its case."""

    alarm: Alarm
    page: str
    size: str
    open: bool

    @property
    def evidence(self) -> str:
        return describe_evidence(self.alarm)

    @property
    def cause(self) -> tuple[str, ...]:
        return describe_cause(replace(self.alarm, commits=""))

    @property
    def commits(self) -> str:
        """The page of the commits, or '' for any other address, which the file of an event may name."""
        return self.alarm.commits if COMMITS_PAGE.fullmatch(self.alarm.commits) else ""

    @property
    def mark(self) -> str:
        return MARKS[self.alarm.change.direction]


def show_alarm(alarm: Alarm, cases: Iterable[str]) -> AlarmDescription:
    page = f"{page_of(alarm.key.case)}#{anchor(alarm.key)}" if alarm.key.case in cases else ""
    return AlarmDescription(alarm=alarm, page=page, size=describe_alarm(alarm), open=is_open_alarm(alarm))


def describe_step_on_page(key: Key, change: Change) -> str:
    return f"{MARKS[change.direction]} {describe_size(key, change)} since {change.first}"


def headline(alarm: Alarm) -> str:
    key = alarm.key
    return f"{key.case}: {describe_alarm(alarm)} in {key.target} since {alarm.change.first}"


def describe_series(key: Key) -> str:
    by = "" if key.judge == "wall" else ", by CPU time"
    return f"against {key.reference} on {key.host}, {key.engine}, {key.device}{by}"


def page_of(case: str) -> str:
    """Return the path of a case's page, which stays the same whatever else is in the history."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", case)[:MOST_SLUG].strip("-").lower()
    return f"cases/{slug}-{hashlib.sha256(case.encode(errors='surrogatepass')).hexdigest()[:8]}.html"


def anchor(key: Key) -> str:
    return f"s-{key.id}"


def format_precise_ratio(value: float) -> str:
    """Format a ratio of a single night, where one percent or less matters."""
    if value < 0.1:
        return f"{value:.3g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def format_ratios(effects: Any, widths: Any) -> list[str]:
    """Format ratios with their intervals; there may be half a million."""
    columns = [np.exp(logs) for logs in (effects, effects - widths, effects + widths)]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    if len(effects) and columns[1].min() >= 0.1 and columns[2].max() < 9.9995:
        return [f"{middle:.3f} ({low:.3f}–{high:.3f})" for middle, low, high in rows]
    return [
        f"{format_precise_ratio(middle)} ({format_precise_ratio(low)}–{format_precise_ratio(high)})"
        for middle, low, high in rows
    ]


def format_figures(metric: Followed, values: Any) -> list[str]:
    """Format the figures of a metric, times in the unit that suits their median."""
    if metric == RESULTS:
        return []
    if metric not in TIMES or not len(values):
        return [METRICS[metric].show(value) for value in values.tolist()]
    middle = float(np.median(values))
    unit, factor = next((unit, factor) for unit, factor in UNITS if middle >= factor or unit == "µs")
    return [f"{value:.3g} {unit}" for value in (values / factor).tolist()]


def format_night_count(count: int) -> str:
    return "1 night" if count == 1 else f"{count} nights"


def span(first: date, last: date) -> str:
    return str(first) if first == last else f"{first} to {last}"
