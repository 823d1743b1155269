"""Text output of the history: one line per series, or the series of one case night by night."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby, pairwise

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.history.alarms import state as states
from orchestrator.history.json import ShownSeries
from orchestrator.history.model import Alarm, Direction, Key
from orchestrator.history.night_rows import ALPHA, NightRow, find_bounds
from orchestrator.history.select import ShownPart, case_of
from orchestrator.history.terminal import alarms as alarmed
from orchestrator.history.terminal.alarms import format_between
from orchestrator.history.terminal.plot import BORDER, GAP, MARKS, MISSING, plot, sparkline
from orchestrator.metrics.followed import RESULTS
from orchestrator.reports.case_names import split_params
from orchestrator.reports.columns import STYLES, Notes, ratio
from orchestrator.reports.grid import Grid
from orchestrator.reports.ratio_plot import cells_for
from orchestrator.reports.table import below
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.text import natural_key, safe_text

NARROWEST = 8
# A table that is at least this wide has room for what a narrow one leaves out.
WIDE = 100
# A table that is narrower than this shows only what was measured, so that dates are not broken.
TIGHT = 72
# A table has at most this many rows unless all are requested: MOST for a single series, FEW for each of several.
MOST, FEW = 30, 10
FEWEST_CELLS, MOST_CELLS = 8, 30
MOST_BORDERS = 5
LEGEND = "ratio: to the reference, in rounds that both shared; interval: 95%"
OVERVIEW = f"{LEGEND}; both from the last night. One cell per night: {BORDER} begins a new segment, {GAP} has no time"
PLOT = f"In the plot: ▲▼ a step, {BORDER} a new segment, {MISSING} no time"

# A heading names the host, engine, device and reference of the series that a table holds.
Heading = tuple[str, ...]


def overview(picked: ShownPart, listed: Sequence[ShownSeries], alarms: Sequence[Alarm], width: int) -> RenderableType:
    notes = Notes()
    hosts = len({entry.series.key.host for entry in listed})
    counts = f"{len(listed)} series of {format_count(len(picked.cases), 'case')} on {format_count(hosts, 'host')}"
    parts: list[RenderableType] = [
        safe_text(f"tfcompare history: {counts}, {picked.first} to {picked.newest}", style="bold"),
        safe_text(OVERVIEW, style="dim"),
    ]
    keys = {entry.series.key for entry in listed}
    open_ = [alarm for alarm in alarmed.sort_alarms(alarms) if states.is_open_alarm(alarm)]
    here = [alarm for alarm in open_ if alarm.key in keys]
    if here:
        parts += [Text(), *alarmed.brief(here)]
    if len(open_) > len(here):
        rest = format_count(len(open_) - len(here), "open alarm")
        parts.append(safe_text(f"{rest} of series that are not shown: `tfcompare history alarms`", style="yellow"))
    # The newest night is looked up per suite: a series has not ended just because another suite ran tonight.
    newest: dict[Heading, date] = {}
    for entry in listed:
        newest[_suite(entry)] = max(entry.rows[-1].night, newest.get(_suite(entry), date.min))
    by_heading = sorted(listed, key=lambda entry: (_heading(entry.series.key), natural_key(entry.series.key.case)))
    for heading, of_heading in groupby(by_heading, lambda entry: _heading(entry.series.key)):
        parts += [Text(), safe_text(" · ".join(heading), style="bold")]
        for workload, of_workload in groupby(of_heading, lambda entry: case_of(entry.series.key.case).workload):
            parts += [Text(), _workload(workload, list(of_workload), newest, width, notes)]
    if picked.ended:
        left_out = f"{picked.ended} series"
        parts += [Text(), safe_text(f"{left_out} without a night since {picked.first}: --all shows them", style="dim")]
    return Group(*parts, *below(notes.lines(ALPHA)))


def detail(listed: Sequence[ShownSeries], width: int, *, whole: bool) -> RenderableType:
    """Show each series of one case in full."""
    notes = Notes()
    parts: list[RenderableType] = []
    most = MOST if len(listed) == 1 else FEW
    for entry in listed:
        parts += [*([Text()] if parts else []), *_head(entry)]
        if lines := plot(entry.rows, _steps(entry), width):
            parts += [Text(), *map(safe_text, lines)]
        if remarks := list(_render_notes(entry)):
            parts += [Text(), *remarks]
        rows = entry.rows if whole else entry.rows[-most:]
        parts += [Text(), _nights(entry, rows, width, notes)]
        if len(rows) < len(entry.rows):
            parts.append(safe_text(f" the last {most} of {len(entry.rows)} nights: --all shows every one", style="dim"))
    return Group(*parts, *below(notes.lines(ALPHA)))


def _workload(
    workload: str, listed: Sequence[ShownSeries], newest: Mapping[Heading, date], width: int, notes: Notes
) -> Grid:
    cases = {entry.series.key.case: case_of(entry.series.key.case) for entry in listed}
    shared, names, own = split_params(cases.values())
    headers = [names, "version", "nights", "ratio", "interval", "", "state"]
    right = [False, False, True, True, True, False, False]
    rows: list[list[str | Text]] = []
    before = ""
    for entry in listed:
        key, last = entry.series.key, entry.rows[-1]
        name = "" if key.case == before else own[cases[key.case]]
        before = key.case
        value = ratio(math.exp(last.value.effect)) if last.value else ""
        interval = format_between(*find_bounds(last.value)) if last.value else ""
        rows.append([name, str(key.target), str(entry.nights), value, interval, "", _standing(entry, newest, notes)])
    keep = [index for index, header in enumerate(headers) if header != "nights" or width >= WIDE]
    # A shorter line of nights is no loss; names that are wider than a quarter of the table are folded.
    taken = [
        min(_width(headers, rows, 0), width // 4),
        *(_width(headers, rows, index) for index in keep[1:] if headers[index]),
    ]
    cells = min(max(cells_for(width, taken) - 2, FEWEST_CELLS), MOST_CELLS)
    for entry, row in zip(listed, rows, strict=True):
        row[5] = sparkline(entry.rows, cells)
    grid = Grid(
        title=_title(workload, shared),
        headers=[headers[index] for index in keep],
        right=[right[index] for index in keep],
        narrowest=NARROWEST,
    )
    for row in rows:
        grid.add(*(row[index] for index in keep))
    return grid


def _width(headers: Sequence[str], rows: Sequence[Sequence[str | Text]], index: int) -> int:
    return max(len(headers[index]), *(len(row[index]) for row in rows))


def _title(workload: str, params: str) -> Text:
    return safe_text(workload, style="bold").append_text(
        safe_text(f"  {params}" if params else "", style="not bold dim")
    )


def _standing(entry: ShownSeries, newest: Mapping[Heading, date], notes: Notes) -> Text:
    """Return the most serious thing there is to know about a series."""
    last = entry.rows[-1]
    if open_ := [alarm for alarm in alarmed.sort_alarms(entry.alarms) if states.is_open_alarm(alarm)]:
        more = f" +{len(open_) - 1}" if len(open_) > 1 else ""
        text = f"{MARKS[open_[0].change.direction]} {open_[0].state} {open_[0].id}{more}"
        return safe_text(text, style=alarmed.style(open_[0]))
    if last.night < newest[_suite(entry)]:
        return Text(f"ended {last.night}", style="yellow")
    if last.result:
        return safe_text(last.result)
    if last.value is None:
        return Text(f"{last.outcome}{notes.mark(last.reason)}", style="yellow")
    return Text()


def _suite(entry: ShownSeries) -> Heading:
    return *_heading(entry.series.key), entry.rows[-1].points[-1].suite


def _heading(key: Key) -> Heading:
    about = (key.about,) if key.about else ()
    return *about, f"host {key.host}", key.engine, key.device, f"against {key.reference}"


def _head(entry: ShownSeries) -> Iterator[Text]:
    key = entry.series.key
    case = case_of(key.case)
    yield _title(case.workload, case.params_text)
    nights = sorted({point.night for point in entry.series.points})
    span = f"{nights[0]} to {nights[-1]}" if len(nights) > 1 else str(nights[0])
    facts = (
        f"{key.target} against {key.reference}",
        *_heading(key)[:-1],
        f"{format_count(len(nights), 'night')}, {span}",
    )
    yield safe_text(" · ".join(facts), style="bold")
    if any(row.value for row in entry.rows):
        yield safe_text(f"{LEGEND}. {PLOT}", style="dim")
    elif key.metric != RESULTS:
        yield safe_text("no night has a time: there is nothing to draw", style="yellow")


def _steps(entry: ShownSeries) -> dict[date, Direction]:
    """Return the steps that a series shows now, and those of its alarms, which may rest on less data."""
    steps = {alarm.change.first: alarm.change.direction for alarm in entry.alarms}
    return {**steps, **{change.first: change.direction for change in entry.changes or ()}}


def _render_notes(entry: ShownSeries) -> Iterator[Text]:
    """Yield the lines below the plot: steps, alarms, and the reasons for new segments."""
    rest = list(alarmed.sort_alarms(entry.alarms))
    for change in entry.changes or ():
        of = next((alarm for alarm in rest if alarm.change.first == change.first), None)
        if of:
            rest.remove(of)
        state = f"; {alarmed.format_alarm_state(of)}" if of else ""
        yield safe_text(f"{alarmed.describe_step(entry.series.key, change)}{state}", style=STYLES[change.direction])
    for alarm in rest:
        step = alarmed.describe_step(alarm.key, alarm.change, alarm.said)
        yield safe_text(f"{step}; {alarmed.format_alarm_state(alarm)}", style=alarmed.style(alarm))
    borders = [row for before, row in pairwise(entry.rows) if row.segment != before.segment]
    if len(borders) > MOST_BORDERS:
        yield safe_text(
            f"{BORDER} {format_count(len(borders) - MOST_BORDERS, 'segment')} began before those that follow",
            style="dim",
        )
    for row in borders[-MOST_BORDERS:]:
        yield safe_text(f"{BORDER} {row.night}: a new segment: {'; '.join(row.changed)}", style="dim")


def _nights(entry: ShownSeries, rows: Sequence[NightRow], width: int, notes: Notes) -> Grid:
    followed = any(row.build != str(entry.series.key.target) for row in entry.rows)
    narrow = width < WIDE
    left_out = {*([] if followed else ["build"]), *(["stage"] if followed and narrow else [])}
    if width < TIGHT:
        left_out |= {"stage", "build", "control"}
    headers = ("night", "ratio", "interval", "rounds", "stage", "build", "control", "")
    right = (False, True, True, True, False, False, True, False)
    keep = [index for index, header in enumerate(headers) if header not in left_out]
    grid = Grid(
        title=Text("nights", style="bold"),
        headers=[headers[index] for index in keep],
        right=[right[index] for index in keep],
        narrowest=10,
    )
    steps = _steps(entry)
    begins = {row.night for before, row in pairwise(entry.rows) if row.segment != before.segment}
    for row in rows:
        value = row.value
        cells = (
            str(row.night),
            ratio(math.exp(value.effect)) if value else "",
            format_between(*find_bounds(value)) if value else "",
            "+".join(str(point.rounds) for point in row.timed),
            row.stage if value else "",
            row.build.partition(".dev")[2] or row.build if narrow else row.build,
            ratio(math.exp(row.control.effect)) if row.control else "",
            " · ".join(_beside(row, steps, begins, notes)),
        )
        grid.add(*(cells[index] for index in keep))
    return grid


def _beside(row: NightRow, steps: Mapping[date, Direction], begins: set[date], notes: Notes) -> Iterator[str]:
    """Yield the remarks on a night that are shown next to its figures."""
    if row.value and row.night in steps:
        yield f"{MARKS[steps[row.night]]} step"
    if row.changed:
        yield f"{'new segment' if row.night in begins else 'changed'}{notes.mark('; '.join(row.changed))}"
    if row.result:
        yield row.result
    if missing := [point for point in row.points if point.outcome != "measured"]:
        yield f"{missing[-1].outcome}{notes.mark(row.reason)}"
