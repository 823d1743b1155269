"""The first page: one grid per place, with a row per case and a small chart per version, and the open alarms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from orchestrator.history.model import Alarm
from orchestrator.history.series import day
from orchestrator.history.site import svg, wording
from orchestrator.history.site.case import title
from orchestrator.history.site.data import Drawn, Place, Sources
from orchestrator.history.site.wording import Said
from orchestrator.reports.columns import ratio
from orchestrator.terminal.text import escape_unprintable


@dataclass(frozen=True, kw_only=True)
class OverviewCell:
    """A version in a case: its last result, its course, and what there is to know about it."""

    version: str
    link: str = ""
    ratio: str = ""
    line: str = ""
    alarms: tuple[Said, ...] = ()
    step: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class OverviewRow:
    case: str
    page: str
    cells: tuple[OverviewCell, ...]

    @property
    def open(self) -> bool:
        return any(alarm.open for cell in self.cells for alarm in cell.alarms)


@dataclass(frozen=True, kw_only=True)
class OverviewGrid:
    place: Place
    title: str
    headers: tuple[str, ...]
    rows: tuple[OverviewRow, ...]


def row(sources: Sources, case: str, place: Place, drawn: Sequence[Drawn]) -> OverviewRow:
    first, last = sources.nights[place]
    return OverviewRow(
        case=case, page=wording.page_of(case), cells=tuple(_cell(sources, one, first, last) for one in drawn)
    )


def grids(rows: dict[Place, list[OverviewRow]]) -> list[OverviewGrid]:
    """Return the grids, in which every row has a cell for every version of its place."""
    found = []
    for place, of_place in sorted(rows.items()):
        headers = tuple(dict.fromkeys(cell.version for one in of_place for cell in one.cells))
        found.append(
            OverviewGrid(
                place=place,
                title=f"Against {place.reference} on {place.host}, {place.engine}, {place.device}",
                headers=headers,
                rows=tuple(_fill(one, headers) for one in of_place),
            )
        )
    return found


def _fill(one: OverviewRow, headers: Sequence[str]) -> OverviewRow:
    known = {cell.version: cell for cell in one.cells}
    return replace(one, cells=tuple(known.get(version) or OverviewCell(version=version) for version in headers))


def _cell(sources: Sources, drawn: Drawn, first: int, last: int) -> OverviewCell:
    key, values = drawn.key, drawn.series.nightly
    alarms: Sequence[Alarm] = drawn.alarms
    told = [wording.describe_alarm(alarm, sources.cases) for alarm in alarms]
    latest = ratio(float(np.exp(values.effect[-1]))) if len(values) else ""
    steps = drawn.changes[-1:]
    label = f"{title(key)}: {latest}" + "".join(f", {wording.step(change)}" for change in steps)
    return OverviewCell(
        version=title(key),
        link=f"{wording.page_of(key.case)}#{wording.anchor(key)}",
        ratio=latest,
        line=svg.spark(drawn.pieces, first, last, [one.first for one in drawn.changes], escape_unprintable(label)),
        alarms=tuple(one for one in told if one.open),
        # An open alarm says it already.
        step=wording.step(steps[0]) if steps and not any(one.open for one in told) else "",
        note=_note(sources, drawn, day(last)),
    )


def _note(sources: Sources, drawn: Drawn, last: date) -> str:
    """Return why the last night of a series differs from that of the other series, or ''."""
    row = drawn.series.rows[-1]
    night = day(int(sources.night[row]))
    outcome = sources.columns["outcome"].text(row)
    if night != last:
        return f"not in the suite since {night}"
    return "" if outcome == "measured" else f"{outcome} on {night}"
