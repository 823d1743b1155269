"""The first page: one grid per setup, with a row per case and a small chart per version, and the open alarms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from orchestrator.history.model import Alarm
from orchestrator.history.series import day
from orchestrator.history.site import svg, wording
from orchestrator.history.site.case import title
from orchestrator.history.site.data import DrawableSeries, SeriesSetup, Sources
from orchestrator.history.site.wording import AlarmDescription
from orchestrator.reports.columns import MARKS, ratio
from orchestrator.terminal.text import escape_unprintable


@dataclass(frozen=True, kw_only=True)
class OverviewCell:
    """A version in a case: its last result, a small chart of its history, and its alarms and notes."""

    target: str
    link: str = ""
    ratio: str = ""
    # This is the verdict of the latest night, or '' if that verdict is not about a ratio.
    verdict: str = ""
    mark: str = ""
    time: str = ""
    line: str = ""
    # This is the logarithm of the last step, without its sign.
    size: float = 0.0
    alarms: tuple[AlarmDescription, ...] = ()
    step: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class OverviewRow:
    case: str
    page: str
    cells: tuple[OverviewCell, ...]

    @property
    def alarms(self) -> int:
        return sum(alarm.open for cell in self.cells for alarm in cell.alarms)

    @property
    def open(self) -> bool:
        return self.alarms > 0

    @property
    def size(self) -> float:
        return max((cell.size for cell in self.cells), default=0.0)


@dataclass(frozen=True, kw_only=True)
class OverviewGrid:
    setup: SeriesSetup
    title: str
    headers: tuple[str, ...]
    rows: tuple[OverviewRow, ...]


def row(sources: Sources, case: str, setup: SeriesSetup, drawables: Sequence[DrawableSeries]) -> OverviewRow:
    first, last = sources.nights[setup]
    cells = tuple(_cell(sources, drawable, first, last) for drawable in drawables)
    return OverviewRow(case=case, page=wording.page_of(case), cells=cells)


def grids(rows: dict[SeriesSetup, list[OverviewRow]]) -> list[OverviewGrid]:
    """Return the grids, in which every row has a cell for every version of its setup."""
    overviews = []
    for setup, of_place in sorted(rows.items(), key=lambda item: item[0].rank):
        headers = tuple(dict.fromkeys(cell.target for row in of_place for cell in row.cells))
        filled = []
        for row in of_place:
            by_target = {cell.target: cell for cell in row.cells}
            cells = tuple(by_target.get(target) or OverviewCell(target=target) for target in headers)
            filled.append(replace(row, cells=cells))
        overviews.append(
            OverviewGrid(
                setup=setup,
                title=setup.title,
                headers=headers,
                rows=tuple(filled),
            )
        )
    return overviews


def _cell(sources: Sources, drawable: DrawableSeries, first: int, last: int) -> OverviewCell:
    key, values = drawable.key, drawable.series.nightly
    alarms: Sequence[Alarm] = drawable.alarms
    descriptions = [wording.show_alarm(alarm, sources.cases) for alarm in alarms]
    latest = ratio(float(np.exp(values.effect[-1]))) if len(values) else ""
    verdict = sources.columns["verdict"].text(int(drawable.series.rows[-1])) if latest else ""
    mark = next((mark for name, mark in MARKS.items() if name == verdict), "")
    steps = drawable.changes[-1:]
    begins = [change.first for change in drawable.changes]
    label = f"{title(key)}: {latest}" + "".join(f", {wording.describe_step_on_page(key, change)}" for change in steps)
    return OverviewCell(
        target=title(key),
        link=f"{wording.page_of(key.case)}#{wording.anchor(key)}",
        ratio=latest,
        verdict=verdict if mark else "",
        mark=mark,
        time=sources.latest_figure(drawable.series),
        size=max((abs(math.log(change.ratio)) for change in steps), default=0.0),
        line=svg.spark(drawable.pieces, first, last, begins, escape_unprintable(label)),
        alarms=tuple(description for description in descriptions if description.open),
        # An open alarm already shows the step.
        step=wording.describe_step_on_page(key, steps[0])
        if steps and not any(description.open for description in descriptions)
        else "",
        note=_note(sources, drawable, day(last)),
    )


def _note(sources: Sources, drawable: DrawableSeries, last: date) -> str:
    """Return why the last night of a series differs from that of the other series, or ''."""
    row = drawable.series.rows[-1]
    night = day(int(sources.night[row]))
    outcome = sources.columns["outcome"].text(row)
    if night != last:
        return f"not in the suite since {night}"
    return "" if outcome == "measured" else f"{outcome} on {night}"
