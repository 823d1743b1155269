"""One function per kind of plot. Each returns names or a scale on the left, and a drawing that fills the rest.

Colours come from the page's style sheet, so that a theme or a printer can change them. Marks have their figures as
titles, and the element around a plot describes it in words.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from markupsafe import Markup

from orchestrator.model import ShownVerdict
from orchestrator.reports.columns import MARKS, ratio
from orchestrator.reports.html import svg
from orchestrator.reports.html.calls import Course
from orchestrator.reports.html.svg import AxisScale, element, stretch
from orchestrator.terminal.durations import format_time

ROW_PX, NARROW_PX = 34, 22
PANEL_PX, TREND_PX = 64, 240
# The names of versions are written at an angle and need this height.
NAMES_PX = 64
AXIS_PX = 22
MOST_TICKS = 5
# A label that is centred closer than this to an edge, as a share of the width, would leave the drawing.
EDGE = 0.06
# A name of at most this many characters fits into every plot.
SHORT = 11
Namer = Callable[[float, int], str]
PHASE_MARKS = {"build": "■", "first": "◆", "second": "▶", "burst": "●"}


@dataclass(frozen=True)
class DrawnRatio:
    """A ratio with its interval; if it has no figures, only its name is drawn."""

    name: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: ShownVerdict | None = None
    margin: float = 0.0

    @property
    def figures(self) -> tuple[float | None, ...]:
        return self.ratio, self.low, self.high

    @property
    def style(self) -> str:
        return _style(self.verdict or "")

    @property
    def mark(self) -> str:
        return MARKS[self.verdict] if self.verdict else "●"

    @property
    def told(self) -> str:
        between = f" ({ratio(self.low)} – {ratio(self.high)})" if self.low and self.high else ""
        return f"{self.name}: {ratio(self.ratio or 1.0)}{between}, {self.verdict}"


@dataclass(frozen=True)
class DrawnStep:
    """Two neighbours that differ from each other."""

    before: str
    after: str
    ratio: float
    verdict: str


@dataclass(frozen=True)
class DrawnTimes:
    """The times of the replicates of a version, in milliseconds, in the order of their rounds."""

    name: str
    times: Sequence[float]
    told: str = ""

    @cached_property
    def quartiles(self) -> tuple[float, float, float]:
        low, middle, high = np.quantile(self.times, (0.25, 0.5, 0.75)).tolist()
        return low, middle, high


def _style(verdict: str) -> str:
    return verdict.replace(" ", "-")


def draw_overview(ratios: Sequence[DrawnRatio], targets: Sequence[str]) -> Markup:
    """Draw a forest plot of every case, with one panel per version; `targets` has the version of each ratio."""
    panels: dict[str, list[DrawnRatio]] = {}
    for target, each in zip(targets, ratios, strict=True):
        panels.setdefault(target, []).append(each)
    scale = _scale_of_ratios(ratios)
    drawn = [
        _panel([each.name for each in of_target], _forest_rows(of_target, scale, NARROW_PX), head=target, narrow=True)
        for target, of_target in panels.items()
    ]
    return element(
        "div",
        _legend_of_verdicts(ratios),
        *drawn,
        _axis_below(scale, _name_ratio, "ratio to the baseline: right of 1 is slower"),
        class_="wide",
    )


def draw_forest(ratios: Sequence[DrawnRatio], about: str = "ratio of times") -> Markup:
    scale = _scale_of_ratios(ratios)
    rows = _forest_rows(ratios, scale, ROW_PX)
    return _panel([each.name for each in ratios], rows) + _axis_below(scale, _name_ratio, about)


def draw_spread(arms: Sequence[DrawnTimes]) -> Markup:
    """Draw the replicates of each version as dots, the first round on top."""
    scale = svg.fit_scale(time for arm in arms for time in arm.times)
    boxes, middles, dots = "", "", []
    for row, arm in enumerate(arms):
        if not arm.times:
            continue
        top = row * ROW_PX
        low, middle, high = map(scale.x, arm.quartiles)
        boxes += f"M{low} {top + 6}H{high}v{ROW_PX - 12}H{low}z"
        middles += f"M{middle} {top + 4}v{ROW_PX - 8}"
        step = (ROW_PX - 12) / max(len(arm.times) - 1, 1)
        places = [(scale.x(time), round(top + 6 + number * step)) for number, time in enumerate(arm.times)]
        dots.append(svg.draw_path(svg.write_dots(places), "dots", arm.told))
    height = len(arms) * ROW_PX
    drawing = stretch(height, _grid(scale, height), svg.draw_path(boxes, "band"), svg.draw_path(middles, "line"), *dots)
    return _panel([arm.name for arm in arms], [drawing]) + _axis_below(scale, _name_time, "time per step")


def draw_calls(courses: Mapping[str, Course]) -> Markup:
    """Draw one panel per version, since overlapping courses could not be distinguished.

    One unit of the paths is a point across and a thousandth upwards; page.js reads the figures of its table from them.
    """
    lines = [line for course in courses.values() for line in (course.low, course.high)]
    level = svg.fit_scale([-5.0, 5.0, *(1000 * (value - 1) for line in lines for value in line)], is_log=False)
    percents = AxisScale(level.low / 10, level.high / 10, is_log=False).ticks(3)
    last = max(course.calls for course in courses.values())
    labels = [(_y_of(level, 10 * value, PANEL_PX), f"{value:+.{digits}f}%") for value, digits in percents]
    panels = []
    for target, course in courses.items():
        lows, middles, highs = (
            [(place, -round(1000 * (value - 1))) for place, value in enumerate(line) if not math.isnan(value)]
            for line in (course.low, course.middle, course.high)
        )
        across = last / course.width
        paths = [
            svg.draw_path("".join(f"M-1 {-10 * value:.4g}H{across:.0f}" for value, _ in percents), "grid"),
            svg.draw_path(f"{svg.write_line([*highs, *reversed(lows)])}z", "band"),
            svg.draw_path(svg.write_line(middles), "line"),
        ]
        box = (-0.5, -level.high, across, level.high - level.low)
        counts = {"data_width": course.width, "data_calls": course.calls}
        panels.append(
            _upright_panel(labels, stretch(PANEL_PX, *paths, box=box, class_="body", **counts), PANEL_PX, target)
        )
    order = AxisScale(0.5, last + 0.5, is_log=False)
    return Markup().join([*panels, _axis_below(order, lambda value, _: f"{value:.0f}", "call")])


def draw_phases(arms: Mapping[str, Mapping[str, float | None]]) -> Markup:
    """Draw one mark for each phase of each version, at the time that it took."""
    # A log scale has no place for zero.
    drawable = [
        {phase: max(time, 1e-6) for phase, time in times.items() if time is not None} for times in arms.values()
    ]
    scale = svg.fit_scale(time for times in drawable for time in times.values())
    height = len(arms) * NARROW_PX
    marks = []
    for phase, mark in PHASE_MARKS.items():
        places = [(row * NARROW_PX + 16, times[phase]) for row, times in enumerate(drawable) if phase in times]
        signs = [svg.place_text(mark, scale.percent(time), y, title=format_time(time)) for y, time in places]
        marks.append(element("g", *signs, class_=f"marks phase-{phase}"))
    legend = _legend({phase: (mark, f"phase-{phase}") for phase, mark in PHASE_MARKS.items()})
    panel = _panel(list(arms), [stretch(height, _grid(scale, height)), *marks], narrow=True)
    return legend + panel + _axis_below(scale, _name_time, "time")


def draw_trend(ratios: Sequence[DrawnRatio], steps: Iterable[DrawnStep]) -> Markup:
    """Draw the versions in order from left to right, and a line between two neighbours that differ."""
    scale = svg.fit_scale([*(value for each in ratios for value in each.figures), 1.0])
    places = {each.name: place for place, each in enumerate(ratios)}
    across = svg.WIDTH / max(len(ratios), 1)
    one = _y_of(scale, 1.0, TREND_PX)
    paths = [svg.draw_path(f"M0 {one}H{svg.WIDTH}", "one")]
    for step in steps:
        x = round(places[step.after] * across)
        title = f"{step.after} against {step.before}: {ratio(step.ratio)}, {step.verdict}"
        paths.append(svg.draw_path(f"M{x} 0V{TREND_PX}", f"step {step.verdict}", title))
    points, intervals, marks = [], [], []
    for each in ratios:
        if not each.ratio:
            continue
        x, down = round((places[each.name] + 0.5) * across), _y_of(scale, each.ratio, TREND_PX)
        points.append((x, down))
        if each.low and each.high:
            d = f"M{x} {_y_of(scale, each.low, TREND_PX)}V{_y_of(scale, each.high, TREND_PX)}"
            intervals.append(svg.draw_path(d, f"interval {each.style}"))
        marks.append(_mark(each, f"{100 * x / svg.WIDTH:.2f}%", down))
    paths += [*([svg.draw_path(svg.write_line(points), "faint")] if points else []), *intervals]
    return _legend_of_verdicts(ratios) + _in_order([each.name for each in ratios], scale, _name_ratio, paths, marks)


def draw_pace(arms: Sequence[DrawnTimes]) -> Markup:
    """Draw the median time of each version with its quartiles, in order from left to right."""
    scale = svg.fit_scale(value for arm in arms if arm.times for value in arm.quartiles)
    points, paths, marks = [], [], []
    for place, arm in enumerate(arms):
        if not arm.times:
            continue
        x = round((place + 0.5) * svg.WIDTH / len(arms))
        low, middle, high = (_y_of(scale, value, TREND_PX) for value in arm.quartiles)
        points.append((x, middle))
        paths.append(svg.draw_path(f"M{x} {low}V{high}", "line"))
        told = f"{arm.name}: {format_time(arm.quartiles[1])}"
        marks.append(_sign("●", "pace", f"{100 * x / svg.WIDTH:.2f}%", middle, told))
    paths += [svg.draw_path(svg.write_line(points), "line")] if points else []
    return _in_order([arm.name for arm in arms], scale, _name_time, paths, marks)


def _scale_of_ratios(ratios: Sequence[DrawnRatio]) -> AxisScale:
    margins = [value for each in ratios for value in (1 + each.margin, 1 / (1 + each.margin))]
    return svg.fit_scale([*(value for each in ratios for value in each.figures), *margins, 1.0])


def _forest_rows(ratios: Sequence[DrawnRatio], scale: AxisScale, row_px: int) -> list[Markup]:
    height = len(ratios) * row_px
    bands, intervals, marks = "", [], []
    for row, each in enumerate(ratios):
        top, middle = row * row_px, round((row + 0.5) * row_px)
        left, right = scale.x(1 / (1 + each.margin)), scale.x(1 + each.margin)
        bands += f"M{left} {top}H{right}v{row_px}H{left}z"
        if each.low and each.high:
            d = f"M{scale.x(each.low)} {middle}H{scale.x(each.high)}"
            intervals.append(svg.draw_path(d, f"interval {each.style}"))
        if each.ratio:
            marks.append(_mark(each, scale.percent(each.ratio), middle))
    one = svg.draw_path(f"M{scale.x(1.0)} 0V{height}", "one")
    return [stretch(height, _grid(scale, height), svg.draw_path(bands, "band"), one, *intervals), *marks]


def _mark(each: DrawnRatio, x: str, y: int) -> Markup:
    return _sign(each.mark, each.style, x, y, each.told)


def _sign(sign: str, style: str, x: str, y: int, told: str) -> Markup:
    """Return a sign with its middle at this place; the middle of a character is above its baseline."""
    return svg.place_text(sign, x, y + 5, f"mark {style}", told)


def _y_of(scale: AxisScale, value: float, height: int) -> int:
    return round((1 - scale.share(value)) * height)


def _grid(scale: AxisScale, height: int) -> Markup:
    return svg.draw_path("".join(f"M{scale.x(value)} 0V{height}" for value, _ in scale.ticks(MOST_TICKS)), "grid")


def _panel(names: Sequence[str], drawing: Sequence[Markup], *, head: str = "", narrow: bool = False) -> Markup:
    """Return rows with their names on the left."""
    height = len(names) * (NARROW_PX if narrow else ROW_PX)
    listed = element(
        "div",
        *(element("span", name, title=name if len(name) > SHORT else None) for name in names),
        class_="names narrow" if narrow else "names",
    )
    body = element("svg", *drawing, class_="body", height=height)
    return element("div", *([element("b", head)] if head else []), listed, body, class_="panel")


def _upright_panel(ticks: Iterable[tuple[int, str]], body: Markup, height: int, head: str = "") -> Markup:
    """Return a drawing with a scale on the left."""
    labels = [svg.place_text(label, "100%", down + 4, "tick") for down, label in ticks]
    left = element("svg", *labels, class_="scale", height=height)
    return element("div", *([element("b", head)] if head else []), left, body, class_="panel")


def _in_order(
    names: Sequence[str], scale: AxisScale, name: Namer, paths: Sequence[Markup], marks: Sequence[Markup]
) -> Markup:
    """Return a drawing of the versions from left to right, with their names below it at an angle."""
    ticks = [(_y_of(scale, value, TREND_PX), name(value, digits)) for value, digits in scale.ticks(MOST_TICKS)]
    grid = svg.draw_path("".join(f"M0 {down}H{svg.WIDTH}" for down, _ in ticks), "grid")
    labels = [
        element(
            "svg",
            svg.place_text(version, "0", 0, "angled"),
            x=f"{100 * (place + 0.5) / len(names):.2f}%",
            y=TREND_PX + 14,
        )
        for place, version in enumerate(names)
    ]
    drawing = [stretch(TREND_PX, grid, *paths), *marks, *labels]
    body = element("svg", *drawing, class_="body", height=TREND_PX + NAMES_PX)
    return _upright_panel(ticks, body, TREND_PX + NAMES_PX)


def _axis_below(scale: AxisScale, name: Namer, title: str) -> Markup:
    labels = []
    for value, digits in scale.ticks(MOST_TICKS):
        # A label at an edge is moved into the drawing, where it cannot overlap a name.
        edge = " from" if scale.share(value) < EDGE else " to" if scale.share(value) > 1 - EDGE else ""
        labels.append(svg.place_text(name(value, digits), scale.percent(value), 14, f"tick{edge}"))
    axis = element("svg", *labels, class_="body", height=AXIS_PX)
    return element("div", element("span", title, class_="axis"), axis, class_="panel")


def _legend_of_verdicts(ratios: Sequence[DrawnRatio]) -> Markup:
    found = {each.verdict for each in ratios}
    return _legend({verdict: (mark, _style(verdict)) for verdict, mark in MARKS.items() if verdict in found})


def _legend(marks: Mapping[str, tuple[str, str]]) -> Markup:
    return element(
        "div",
        *(element("span", f"{mark} {word}", class_=style) for word, (mark, style) in marks.items()),
        class_="signs",
    )


def _name_ratio(value: float, digits: int) -> str:
    return f"{value:.{digits}f}x"


def _name_time(milliseconds: float, digits: int) -> str:
    units = (("min", 6e4), ("s", 1e3), ("ms", 1.0), ("µs", 1e-3))
    unit, factor = next((each for each in units if milliseconds >= each[1] * (1 - 1e-9)), units[-1])
    return f"{milliseconds / factor:.6g} {unit}"
