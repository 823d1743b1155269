"""The page of a case: one section per setup, with a chart per version and control arm, and a table of its nights."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import groupby, pairwise, repeat
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from orchestrator.history.alarms.state import is_open_alarm
from orchestrator.history.model import Key
from orchestrator.history.series import EPOCH, day
from orchestrator.history.site import svg, wording
from orchestrator.history.site.data import DrawableSeries, SeriesSetup, Sources
from orchestrator.history.site.wording import AlarmDescription
from orchestrator.history.surroundings import NAMES
from orchestrator.metrics.followed import RESULTS, TIME
from orchestrator.reports.columns import MARKS, ratio
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.text import escape_unprintable

# The pages of cases are in a separate folder.
HOME = "../"
HEIGHT_PX, CONTROL_PX = 220, 90
# A list below a chart has at most this many entries; older ones are only counted.
MOST_LISTED = 20
# More signs than this would hide each other.
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
    alarms: tuple[AlarmDescription, ...]
    steps: tuple[str, ...]
    begun: tuple[str, ...]
    without: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ChartSection:
    """A section of a case's page; `first` and `last` are the ends of its charts."""

    setup: SeriesSetup
    title: str
    first: date
    last: date
    charts: tuple[Chart, ...]
    headers: tuple[str, ...]
    rows: Markup
    nights: int


def section(sources: Sources, setup: SeriesSetup, drawables: Sequence[DrawableSeries]) -> ChartSection:
    first, last = sources.nights[setup]
    rows, count = _rows(sources, drawables)
    return ChartSection(
        setup=setup,
        title=setup.title,
        first=day(first),
        last=day(last),
        charts=tuple(_chart(sources, drawable, column, first, last) for column, drawable in enumerate(drawables, 1)),
        headers=tuple(title(drawable.key) for drawable in drawables),
        rows=rows,
        nights=count,
    )


def title(key: Key) -> str:
    return "Control arm" if key.is_control else str(key.target)


def _chart(sources: Sources, drawable: DrawableSeries, column: int, first: int, last: int) -> Chart:
    key, series = drawable.key, drawable.series
    around = sources.around[key]
    begins = [(piece, int(piece.values.night[0])) for piece in series.pieces[1:]]
    without = series.rows[~sources.timed[series.rows]]
    summary = _summary(sources, drawable, day(last))
    return Chart(
        id=wording.anchor(key),
        title=title(key),
        summary=summary,
        control=key.is_control,
        drawing=_drawing(sources, drawable, first, last, without, f"{title(key)}: {summary}"),
        column=column,
        alarms=tuple(wording.show_alarm(alarm, sources.cases) for alarm in drawable.alarms),
        steps=_latest([wording.describe_step_on_page(key, change) for change in drawable.changes], "steps"),
        begun=_latest([f"{day(number)}: {'; '.join(piece.because)}" for piece, number in begins], "segments"),
        without=_latest(_without(sources, without), "stretches"),
        # These facts are about the latest night.
        facts=tuple(
            (NAMES[name][0].upper() + NAMES[name][1:], fact) for name, fact in around.items() if fact and name in NAMES
        ),
    )


def _summary(sources: Sources, drawable: DrawableSeries, last: date) -> str:
    values = drawable.series.nightly
    if drawable.key.metric == RESULTS:
        row = drawable.series.rows[-1]
        return f"{sources.columns['verdict'].text(row)} on {day(int(sources.night[row]))}"
    if not len(values):
        return "never measured"
    night = day(int(values.night[-1]))
    latest = f"{ratio(float(np.exp(values.effect[-1])))} on {night}"
    if drawable.key.is_control:
        return f"the reference against itself, whose true ratio is 1: {latest}"
    gone = "" if night == last else ", not measured since"
    figure = sources.latest_figure(drawable.series)
    per_step = " per step" if drawable.key.metric == TIME else ""
    latest += f", {figure}{per_step}" if figure else ""
    count = len(drawable.changes)
    steps = format_count(count, "step") if count else "no step"
    return f"{latest}{gone}; {steps} in {wording.format_night_count(len(values))}"


def _drawing(sources: Sources, drawable: DrawableSeries, first: int, last: int, without: Any, label: str) -> Markup:
    if not len(drawable.series.nightly):
        return Markup()
    control = drawable.key.is_control
    scale = svg.scale(drawable.pieces, drawable.widths, first, last, CONTROL_PX if control else HEIGHT_PX)
    marks = [svg.Mark(change.first, MARKS[change.direction], 1, change.direction) for change in drawable.changes]
    for alarm in drawable.alarms:
        sign = wording.OPEN_SIGN if is_open_alarm(alarm) else wording.CLOSED_SIGN
        marks.append(svg.Mark(alarm.change.first, sign, 0, alarm.change.direction))
    return svg.chart(
        scale,
        drawable.pieces,
        drawable.widths,
        levels=() if control else _levels(drawable),
        cuts=[int(values.night[0]) for values in drawable.pieces[1:]],
        without=np.unique(sources.night[without]),
        marks=marks[-MOST_SIGNS:],
        label=escape_unprintable(label),
    )


def _levels(drawable: DrawableSeries) -> list[svg.Level]:
    """Return the mean of each stretch between two steps of a segment."""
    starts = np.array([(change.first - EPOCH).days for change in drawable.changes], dtype=np.int64)
    levels = []
    for values in drawable.pieces:
        edges = np.unique([0, *np.searchsorted(values.night, starts), len(values)]).tolist()
        for low, high in pairwise(edges):
            night = values.night[low:high]
            levels.append(svg.Level(int(night[0]), int(night[-1]), float(values.effect[low:high].mean())))
    return levels


def _without(sources: Sources, rows: Any) -> list[str]:
    """Describe the nights without a ratio, grouping successive nights that have the same reason."""
    reason = sources.columns["reason"]
    lines = []
    for (word, because), same in groupby(rows.tolist(), key=lambda row: (_word(sources, row), reason.text(row))):
        nights = sorted({day(int(sources.night[row])) for row in same})
        lines.append(
            f"{wording.span(nights[0], nights[-1])}, {wording.format_night_count(len(nights))}: {word}"
            + (f": {because}" if because else "")
        )
    return lines


def _word(sources: Sources, row: int) -> str:
    """Return the word that is shown for a night without a ratio."""
    ended, verdict = (sources.columns[name].text(row) for name in ("outcome", "verdict"))
    if sources.of_results[row]:
        return verdict
    return "too few rounds" if ended == "measured" else ended


def _latest(lines: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the latest entries, newest first, and how many came before."""
    latest = tuple(reversed(lines[-MOST_LISTED:]))
    more = len(lines) - len(latest)
    return (*latest, f"and {more} {what} before") if more else latest


def _rows(sources: Sources, drawables: Sequence[DrawableSeries]) -> tuple[Markup, int]:
    """Return the rows of the table, newest first, and their number.

    End tags of cells and rows are omitted, as HTML allows: a site has half a million of them.
    """
    runs = _runs(sources, np.concatenate([drawable.series.rows for drawable in drawables]))
    nights = list(runs)
    columns = [map(_cells(sources, drawable).get, nights, repeat("")) for drawable in drawables]
    rows = zip(map(_head, nights), *columns, runs.values(), strict=True)
    return Markup("\n".join(map("<td>".join, rows))), len(nights)  # noqa: S704


def _cells(sources: Sources, drawable: DrawableSeries) -> dict[int, str]:
    """Return the cells of a series by the number of the day."""
    series, values = drawable.series, drawable.series.nightly
    build = sources.columns["build"]
    without = series.rows[~sources.timed[series.rows]].tolist()
    cells = {int(sources.night[row]): _safe(_word(sources, row)) for row in without}
    cells.update(zip(values.night.tolist(), wording.format_ratios(values.effect, values.half_widths()), strict=True))
    known = series.rows[sources.timed[series.rows] & np.isfinite(sources.figures[series.rows])]
    figures = wording.format_figures(drawable.key.metric, sources.figures[known])
    for night, figure in zip(sources.night[known].tolist(), figures, strict=True):
        cells[night] += f" <i>{figure}</i>"
    if build.text(series.rows[-1]) != str(drawable.key.target):
        for row in series.rows.tolist():
            night = int(sources.night[row])
            cells[night] += f" <i>{_safe(build.text(row))}</i>"
    return cells


@cache
def _head(night: int) -> str:
    return f"<tr><th>{day(night)}"


def _runs(sources: Sources, rows: Any) -> dict[int, str]:
    """Return the runs of each night, newest first, with links to them."""
    column = sources.columns["run"]
    many = len(column.texts)
    pairs = np.unique(sources.night[rows] * many + column.codes[rows])[::-1]
    name = pairs.tobytes()
    if name not in sources.runs_by_night:
        by_night: dict[int, list[str]] = defaultdict(list)
        for pair in pairs.tolist():
            name_of_run = column.texts[pair % many]
            link, text = sources.runs.link(HOME, name_of_run), _safe(name_of_run)
            by_night[pair // many].append(f'<a href="{escape(link)}">{text}</a>' if link else text)
        sources.runs_by_night[name] = {night: " ".join(of_night) for night, of_night in by_night.items()}
    return sources.runs_by_night[name]


def _safe(text: str) -> str:
    return str(escape(escape_unprintable(text)))
