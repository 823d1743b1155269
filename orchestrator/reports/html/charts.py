"""One altair chart per kind of plot.

Their data are named and not included: the page has them once per case, and page.js joins the two. Colours are the
page's variables, so that a theme or a printer can change them without redrawing.
"""

from collections.abc import Mapping
from typing import Any

import altair as alt

Chart = alt.Chart | alt.LayerChart | alt.FacetChart

# Room for the names of versions left of every plot, so that the plots of a case are aligned.
NAMES_PX = 84
ROW_PX = 34
CASE_PX = 22
TREND_PX = 240
# Between rows that hold a cloud of points.
GAP = 0.25
VERDICTS = ("slower", "faster", "slightly slower", "slightly faster", "same", "inconclusive")
SHAPES = ("triangle-up", "triangle-down", "diamond", "cross", "square", "circle")
PHASES = ("build", "first", "second", "burst")
PHASE_SHAPES = ("square", "diamond", "triangle-right", "circle")

# Formats milliseconds in the unit that fits.
TIME_LABEL = (
    "(datum.value >= 60000 ? format(datum.value / 60000, '~g') + ' min' : "
    "datum.value >= 1000 ? format(datum.value / 1000, '~g') + ' s' : "
    "datum.value >= 1 ? format(datum.value, '~g') + ' ms' : format(datum.value * 1000, '~g') + ' µs')"
)
RATIO = "ratio of times"
RATIO_LABEL = "(format(datum.value, '~g') + 'x')"

# On a wide scale only these values have room for their labels; 1 is one of them, because ratios are read against it.
LABELLED = (
    "domain('x')[1] / domain('x')[0] < 5 || "
    "indexof([1, 2, 5], round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-6)))) >= 0"
)

INK, DIM, LINE, ACCENT, BAND = (f"var(--{name})" for name in ("ink", "dim", "line", "accent", "band"))
CONFIG: Mapping[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    # The figure around a plot says in words what it shows.
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": DIM, "titleColor": DIM, "gridColor": LINE, "domainColor": LINE, "tickColor": LINE,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": NAMES_PX - 8,
    },
    "axisY": {"minExtent": NAMES_PX, "maxExtent": NAMES_PX},
    "legend": {"labelColor": DIM, "titleColor": DIM, "labelFontSize": 12, "symbolStrokeColor": DIM},
    "header": {"labelColor": INK, "titleColor": DIM, "labelFontSize": 12},
    "rule": {"color": ACCENT},
    "point": {"filled": True, "size": 40, "color": ACCENT},
}  # fmt: skip


def specs() -> dict[str, dict[str, Any]]:
    """Return the Vega-Lite specifications by kind of plot."""
    charts = {
        "overview": _overview(),
        "spread": _spread(),
        "forest": _forest(),
        "calls": _calls(),
        "phases": _phases(),
        "trend": trend(),
        "pace": _pace(),
    }
    return {kind: chart.configure(**CONFIG).to_dict() for kind, chart in charts.items()}


def _targets(gap: float | None = None) -> alt.Y:
    """Return an axis with one row per version, in the order of the run."""
    axis = alt.Axis(domain=False, ticks=False)
    scale = alt.Undefined if gap is None else alt.Scale(paddingInner=gap)
    return alt.Y("target:N", sort=None, title=None, axis=axis, scale=scale)


def _log(field: str, title: str, label: str) -> alt.X:
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = alt.Axis(
        labelExpr=f"({LABELLED}) ? {label} : ''", tickCount=6, labelFlush=False, labelSeparation=12, gridOpacity=0.6
    )
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def _time(field: str, title: str = "time a step") -> alt.X:
    return _log(field, title, TIME_LABEL)


def _ratio(field: str, title: str = RATIO) -> alt.X:
    return _log(field, title, RATIO_LABEL)


def _overview() -> Chart:
    """Return a forest plot of every case, with one panel per version, in the order of the data."""
    title = "ratio to the baseline: right of 1 is slower"
    cases = alt.Y("case:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False))
    base = alt.Chart()
    margin = base.mark_bar(color=BAND, height=CASE_PX).encode(x=_ratio("least", title), x2="most:Q", y=cases)
    parity = base.mark_rule(color=DIM).encode(x=_ratio("parity", title))
    intervals = base.mark_rule(strokeWidth=2).encode(x=_ratio("low", title), x2="high:Q", y=cases, color=_by_verdict())
    ratios = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=_ratio("ratio", title),
        y=cases,
        color=_by_verdict(),
        shape=alt.Shape("verdict:N", scale=alt.Scale(domain=VERDICTS, range=SHAPES), legend=_legend()),
        tooltip=["case:N", "target:N", "ratio:Q", "low:Q", "high:Q", "verdict:N"],
    )
    panel = alt.layer(margin, parity, intervals, ratios, data=alt.NamedData("ratios"))
    header = alt.Header(labelAnchor="start", labelFontWeight="bold", labelPadding=2, title=None)
    panels: Chart = (
        panel.properties(height=alt.Step(CASE_PX))
        .facet(facet=alt.Facet("target:N", sort=None, header=header, title=None), columns=1)
        .properties(spacing=12)
    )
    return panels


def _spread() -> Chart:
    base = alt.Chart(alt.NamedData("points"))
    quartiles = base.mark_bar(color=BAND, height=ROW_PX - 12, cornerRadius=3).encode(
        x=_time("q1(ms)"), x2="q3(ms):Q", y=_targets(GAP)
    )
    middle = base.mark_tick(color=ACCENT, thickness=2, size=ROW_PX - 8).encode(x=_time("median(ms)"), y=_targets(GAP))
    dots = base.mark_circle(color=ACCENT, size=26, opacity=0.75).encode(
        x=_time("ms"),
        y=_targets(GAP),
        yOffset=alt.YOffset("round:Q", scale=alt.Scale(range=[6, ROW_PX - 6], zero=False, nice=False)),
        tooltip=["target:N", "round:Q", "ms:Q"],
    )
    return alt.layer(quartiles, middle, dots).properties(height=alt.Step(ROW_PX, **{"for": "position"}))


def _forest() -> Chart:
    base = alt.Chart(alt.NamedData("comparisons"))
    margin = base.mark_bar(color=BAND, height=ROW_PX).encode(x=_ratio("least"), x2="most:Q", y=_targets())
    intervals = base.mark_rule(strokeWidth=2).encode(
        x=_ratio("low"), x2="high:Q", y=_targets(), color=_by_verdict(legend=None)
    )
    ratios = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=_ratio("ratio"),
        y=_targets(),
        color=_by_verdict(legend=None),
        shape=alt.Shape("verdict:N", scale=alt.Scale(domain=VERDICTS, range=SHAPES), legend=None),
        tooltip=["target:N", "ratio:Q", "low:Q", "high:Q", "verdict:N"],
    )
    return alt.layer(margin, _one(), intervals, ratios).properties(height=alt.Step(ROW_PX))


def trend() -> Chart:
    """Return a chart with the versions in order from left to right, and a line between two neighbours that differ."""
    base = alt.Chart(alt.NamedData("trend"))
    # Invisible marks that keep the positions of versions without a ratio.
    positions = base.mark_point(opacity=0, tooltip=None).encode(x=_in_order())
    between = alt.ExprRef("-width / length(domain('x')) / 2")
    steps = (
        alt.Chart(alt.NamedData("steps"))
        .mark_rule(strokeDash=[2, 3], strokeWidth=1.5, xOffset=between)
        .encode(x=_in_order(), color=_by_verdict(), tooltip=["before:N", "target:N", "step:Q", "verdict:N"])
    )
    line = base.mark_line(color=LINE, strokeWidth=1.5).encode(x=_in_order(), y=_upwards("ratio", RATIO, RATIO_LABEL))
    intervals = base.mark_rule(strokeWidth=2).encode(
        x=_in_order(), y=_upwards("low", RATIO, RATIO_LABEL), y2="high:Q", color=_by_verdict()
    )
    ratios = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=_in_order(),
        y=_upwards("ratio", RATIO, RATIO_LABEL),
        color=_by_verdict(),
        shape=alt.Shape("verdict:N", scale=alt.Scale(domain=VERDICTS, range=SHAPES), legend=_legend()),
        tooltip=["target:N", "ratio:Q", "low:Q", "high:Q", "verdict:N"],
    )
    parity = (
        alt.Chart(alt.NamedData("one"))
        .mark_rule(color=DIM, strokeDash=[3, 3])
        .encode(y=_upwards("ratio", RATIO, RATIO_LABEL))
    )
    chart: Chart = alt.layer(positions, parity, steps, line, intervals, ratios).properties(height=TREND_PX)
    return chart


def _pace() -> Chart:
    base = alt.Chart(alt.NamedData("pace"))
    positions = base.mark_point(opacity=0, tooltip=None).encode(x=_in_order())
    title = "time a step"
    quartiles = base.mark_rule(color=ACCENT, strokeWidth=2).encode(
        x=_in_order(), y=_upwards("q1", title, TIME_LABEL), y2="q3:Q"
    )
    line = base.mark_line(color=ACCENT, strokeWidth=1.5, point=alt.OverlayMarkDef(size=40, color=ACCENT)).encode(
        x=_in_order(), y=_upwards("ms", title, TIME_LABEL), tooltip=["target:N", "ms:Q"]
    )
    chart: Chart = alt.layer(positions, quartiles, line).properties(height=TREND_PX)
    return chart


def _in_order() -> alt.X:
    """Return an axis of versions in the order of the data."""
    return alt.X("target:N", sort=None, title=None, axis=alt.Axis(labelAngle=-45, domain=False, grid=False))


def _upwards(field: str, title: str, label: str) -> alt.Y:
    scale = alt.Scale(type="log", nice=False, padding=10)
    labelled = LABELLED.replace("domain('x')", "domain('y')")
    axis = alt.Axis(labelExpr=f"({labelled}) ? {label} : ''", tickCount=5, gridOpacity=0.6)
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=axis)


def _calls() -> Chart:
    """Return a chart with one panel per version, since overlapping courses could not be distinguished."""
    level = alt.Y("middle:Q", title=None, axis=alt.Axis(format="+.0%", tickCount=3), scale=alt.Scale(zero=False))
    order = alt.X("call:Q", title="call", scale=alt.Scale(nice=False), axis=alt.Axis(tickMinStep=1, format="d"))
    band = alt.Chart().mark_area(color=BAND).encode(x=order, y=alt.Y("low:Q", title=None), y2="high:Q")
    line = (
        alt.Chart()
        .mark_line(color=ACCENT, strokeWidth=1.5, point=alt.OverlayMarkDef(size=14, color=ACCENT))
        .encode(x=order, y=level, tooltip=["target:N", "call:Q", alt.Tooltip("middle:Q", format="+.1%")])
    )
    panel = alt.layer(band, line, data=alt.NamedData("calls")).properties(height=64)
    header = alt.Header(labelAnchor="start", labelFontWeight="bold", labelPadding=2, title=None)
    panels: Chart = panel.facet(
        facet=alt.Facet("target:N", sort=None, header=header, title=None), columns=1
    ).properties(spacing=12)
    return panels


def _phases() -> Chart:
    colours = alt.Scale(domain=PHASES, range=[f"var(--{phase})" for phase in PHASES])
    chart: Chart = (
        alt.Chart(alt.NamedData("phases"))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=_time("ms", "time"),
            y=_targets(),
            color=alt.Color("phase:N", scale=colours, sort=list(PHASES), legend=_legend()),
            shape=alt.Shape("phase:N", scale=alt.Scale(domain=PHASES, range=PHASE_SHAPES), legend=_legend()),
            tooltip=["target:N", "phase:N", "ms:Q"],
        )
        .properties(height=alt.Step(ROW_PX - 8))
    )
    return chart


def _one(title: str = RATIO) -> alt.Chart:
    """Return the line on which both are equally fast."""
    line: alt.Chart = (
        alt.Chart(alt.NamedData("one")).mark_rule(color=DIM, strokeDash=[3, 3]).encode(x=_ratio("ratio", title))
    )
    return line


def _by_verdict(**options: Any) -> alt.Color:
    scale = alt.Scale(domain=VERDICTS, range=[f"var(--{verdict.replace(' ', '-')})" for verdict in VERDICTS])
    return alt.Color("verdict:N", scale=scale, **({"legend": _legend()} | options))


def _legend() -> alt.Legend:
    return alt.Legend(orient="top", title=None, symbolOpacity=1)
