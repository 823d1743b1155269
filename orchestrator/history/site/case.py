"""The page of a case: one section per place, with a chart per version and control arm, and a table of its nights."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import groupby, pairwise, repeat
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from orchestrator.history.model import Key
from orchestrator.history.series import EPOCH, day
from orchestrator.history.site import svg, wording
from orchestrator.history.site.data import Drawn, Place, Runs, Sources
from orchestrator.history.site.wording import Said
from orchestrator.history.surroundings import NAMES
from orchestrator.reports.columns import MARKS, ratio
from orchestrator.terminal.text import escape_unprintable

# The pages of cases lie in a folder of their own.
HOME = "../"
HEIGHT_PX, CONTROL_PX = 220, 90
# Of what a list beneath a chart names; what is older is counted.
MOST_LISTED = 20
# More signs than these would hide each other.
MOST_SIGNS = 200


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart of a series.

    `steps`, `begun` and `without` explain its signs. `control` marks the control arm, whose true ratio is 1.
    """

    id: str
    title: str
    summary: str
    control: bool
    drawing: Markup
    column: int
    alarms: tuple[Said, ...]
    steps: tuple[str, ...]
    begun: tuple[str, ...]
    without: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ChartSection:
    """A section of a case's page; `first` and `last` are the ends of its charts."""

    place: Place
    title: str
    first: date
    last: date
    charts: tuple[Chart, ...]
    headers: tuple[str, ...]
    rows: Markup
    nights: int


def section(sources: Sources, place: Place, drawn: Sequence[Drawn]) -> ChartSection:
    first, last = sources.nights[place]
    rows, count = _rows(sources, drawn)
    return ChartSection(
        place=place,
        title=f"Against {place.reference} on {place.host}, {place.engine}, {place.device}",
        first=day(first),
        last=day(last),
        charts=tuple(_chart(sources, one, column, first, last) for column, one in enumerate(drawn, 1)),
        headers=tuple(title(one.key) for one in drawn),
        rows=rows,
        nights=count,
    )


def title(key: Key) -> str:
    return "Control arm" if key.is_control else key.version


def _chart(sources: Sources, drawn: Drawn, column: int, first: int, last: int) -> Chart:
    key, series = drawn.key, drawn.series
    begins = [(piece, int(piece.values.night[0])) for piece in series.pieces[1:]]
    without = series.rows[~sources.timed[series.rows]]
    summary = _summary(drawn, day(last))
    return Chart(
        id=wording.anchor(key),
        title=title(key),
        summary=summary,
        control=key.is_control,
        drawing=_drawing(sources, drawn, first, last, without, f"{title(key)}: {summary}"),
        column=column,
        alarms=tuple(wording.describe_alarm(alarm, sources.cases) for alarm in drawn.alarms),
        steps=_latest([wording.step(change) for change in drawn.changes], "steps"),
        begun=_latest([f"{day(at)}: {'; '.join(piece.because)}" for piece, at in begins], "segments"),
        without=_latest(_without(sources, without), "stretches"),
        facts=_facts(sources.around[key]),
    )


def _summary(drawn: Drawn, last: date) -> str:
    values = drawn.series.nightly
    if not len(values):
        return "never measured"
    night = day(int(values.night[-1]))
    told = f"{ratio(float(np.exp(values.effect[-1])))} on {night}"
    if drawn.key.is_control:
        return f"the reference against itself, whose true ratio is 1: {told}"
    gone = "" if night == last else ", not measured since"
    steps = "no step" if not drawn.changes else f"{len(drawn.changes)} step{'s' if len(drawn.changes) > 1 else ''}"
    return f"{told}{gone}; {steps} in {wording.nights(len(values))}"


def _drawing(sources: Sources, drawn: Drawn, first: int, last: int, without: Any, label: str) -> Markup:
    if not len(drawn.series.nightly):
        return Markup()
    control = drawn.key.is_control
    on = svg.scale(drawn.pieces, drawn.widths, first, last, CONTROL_PX if control else HEIGHT_PX)
    return svg.chart(
        on,
        drawn.pieces,
        drawn.widths,
        levels=() if control else _levels(drawn),
        cuts=[int(values.night[0]) for values in drawn.pieces[1:]],
        without=np.unique(sources.night[without]),
        marks=_marks(drawn)[-MOST_SIGNS:],
        label=escape_unprintable(label),
    )


def _levels(drawn: Drawn) -> list[svg.Level]:
    """Return the mean of each stretch between two steps of a segment."""
    starts = np.array([(change.first - EPOCH).days for change in drawn.changes], dtype=np.int64)
    found = []
    for values in drawn.pieces:
        edges = np.unique([0, *np.searchsorted(values.night, starts), len(values)]).tolist()
        for low, high in pairwise(edges):
            night = values.night[low:high]
            found.append(svg.Level(int(night[0]), int(night[-1]), float(values.effect[low:high].mean())))
    return found


def _marks(drawn: Drawn) -> list[svg.Mark]:
    steps = [svg.Mark(one.first, MARKS[one.direction], 1, one.direction) for one in drawn.changes]
    told = [wording.describe_alarm(alarm, ()) for alarm in drawn.alarms]
    signs = [(wording.OPEN_SIGN if one.open else wording.CLOSED_SIGN, one.alarm.change) for one in told]
    return steps + [svg.Mark(change.first, sign, 0, change.direction) for sign, change in signs]


def _without(sources: Sources, rows: Any) -> list[str]:
    """Describe the nights without a ratio, grouping successive nights that have the same reason."""
    outcome, reason = sources.columns["outcome"], sources.columns["reason"]
    found = []
    for (ended, because), same in groupby(rows.tolist(), key=lambda row: (outcome.text(row), reason.text(row))):
        nights = sorted({day(int(sources.night[row])) for row in same})
        word = "too few rounds" if ended == "measured" else ended
        found.append(
            f"{wording.span(nights[0], nights[-1])}, {wording.nights(len(nights))}: {word}"
            + (f": {because}" if because else "")
        )
    return found


def _latest(told: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the latest entries, newest first, and how many came before."""
    shown = tuple(reversed(told[-MOST_LISTED:]))
    more = len(told) - len(shown)
    return (*shown, f"and {more} {what} before") if more else shown


def _facts(around: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the environment of the latest night."""
    return tuple((NAMES[name][0].upper() + NAMES[name][1:], fact) for name, fact in around.items() if fact)


def _rows(sources: Sources, drawn: Sequence[Drawn]) -> tuple[Markup, int]:
    """Return the rows of the table, newest first, and their number.

    End tags of cells and rows are omitted, as HTML allows: a site has half a million of them.
    """
    runs = _runs(sources, np.concatenate([one.series.rows for one in drawn]))
    nights = list(runs)
    columns = [map(_cells(sources, one).get, nights, repeat("")) for one in drawn]
    rows = zip(map(_head, nights), *columns, runs.values(), strict=True)
    return Markup("\n".join(map("<td>".join, rows))), len(nights)  # noqa: S704


def _cells(sources: Sources, drawn: Drawn) -> dict[int, str]:
    """Return the cells of a series by the number of the day."""
    series, values = drawn.series, drawn.series.nightly
    outcome, build = sources.columns["outcome"], sources.columns["build"]
    without = series.rows[~sources.timed[series.rows]].tolist()
    found = {int(sources.night[row]): _safe(outcome.text(row)) for row in without}
    found.update(zip(values.night.tolist(), wording.cells(values.effect, values.half_widths()), strict=True))
    if build.text(series.rows[-1]) != drawn.key.version:
        for row in series.rows.tolist():
            night = int(sources.night[row])
            found[night] += f" <i>{_safe(build.text(row))}</i>"
    return found


@cache
def _head(night: int) -> str:
    return f"<tr><th>{day(night)}"


def _runs(sources: Sources, rows: Any) -> dict[int, str]:
    """Return the runs of each night, newest first, with links to them."""
    column = sources.columns["run"]
    many = len(column.texts)
    pairs = np.unique(sources.night[rows] * many + column.codes[rows])[::-1]
    name = pairs.tobytes()
    if name not in sources.told_runs:
        found: dict[int, list[str]] = defaultdict(list)
        for pair in pairs.tolist():
            found[pair // many].append(_run(sources.runs, column.texts[pair % many]))
        sources.told_runs[name] = {night: " ".join(of_night) for night, of_night in found.items()}
    return sources.told_runs[name]


def _run(runs: Runs, name: str) -> str:
    link = runs.link(HOME, name)
    return f'<a href="{escape(link)}">{_safe(name)}</a>' if link else _safe(name)


def _safe(text: str) -> str:
    return str(escape(escape_unprintable(text)))
