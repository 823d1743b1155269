"""The chart of a case: how its level moved from release to release, with the steps that are certain."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from orchestrator.atlas.figures import AtlasRatio, AtlasRelease
from orchestrator.reports.columns import MARKS
from orchestrator.reports.html.svg import (
    WIDTH,
    AxisScale,
    draw_path,
    element,
    fit_scale,
    place_text,
    stretch,
    write_dots,
    write_line,
)

HEIGHT, TOP, AXIS = 180, 22, 26
MOST_TICKS = 6
# A label of a release takes this many characters of a chart that is as wide as a page.
MOST_LABELS = 30


def draw_levels(
    releases: Sequence[AtlasRelease],
    reference: str,
    levels: dict[str, AtlasRatio],
    steps: dict[str, AtlasRatio],
    label: str,
) -> Markup:
    """Draw the level of each release against the reference, with its interval, and a mark above each certain step.

    Without any level there is no drawing.
    """
    known = [(place, levels[each.name]) for place, each in enumerate(releases) if each.name in levels]
    ends = [value for _, each in known for value in (each.ratio, each.ci_low, each.ci_high)]
    scale = fit_scale([*ends, 1.0])
    last = len(releases) - 1
    points = [
        (_across(place, last), _down(scale, each.ratio or 1.0)) for place, each in known if each.ratio is not None
    ]
    if releases[-1].name == reference:
        points.append((_across(last, last), _down(scale, 1.0)))
    if not points:
        return Markup()
    grid = "".join(f"M0 {_down(scale, value)}H{WIDTH}" for value, _ in scale.ticks(MOST_TICKS))
    bars = "".join(
        f"M{_across(place, last)} {_down(scale, each.ci_low)}V{_down(scale, each.ci_high)}"
        for place, each in known
        if each.ci_low and each.ci_high
    )
    drawn = stretch(
        HEIGHT, draw_path(grid, "grid"), draw_path(f"M0 {_down(scale, 1.0)}H{WIDTH}", "one"),
        draw_path(bars, "bars"), draw_path(write_line(points), "line"), draw_path(write_dots(points), "dots"),
        y=TOP, width="100%",
    )  # fmt: skip
    signs = [
        place_text(MARKS[steps[each.name].verdict], _percent(place, last), 14, f"sign {steps[each.name].verdict}")
        for place, each in enumerate(releases)
        if each.name in steps and steps[each.name].is_named
    ]
    every = math.ceil(len(releases) / MOST_LABELS)
    names = [
        place_text(each.short, _percent(place, last), TOP + HEIGHT + 16, "release")
        for place, each in enumerate(releases)
        if (last - place) % every == 0
    ]
    height = TOP + HEIGHT + AXIS
    ratios = [
        element("text", f"{value:.{digits}f}x", x="100%", dx=-6, y=TOP + _down(scale, value) + 4)
        for value, digits in scale.ticks(MOST_TICKS)
    ]
    return element("svg", *ratios, class_="ratios", height=height, aria_hidden="true") + element(
        "svg", drawn, *signs, *names, class_="body", role="img", aria_label=label, height=height
    )


def _across(place: int, last: int) -> int:
    return round((0.02 + 0.96 * place / max(last, 1)) * WIDTH)


def _percent(place: int, last: int) -> str:
    return f"{100 * _across(place, last) / WIDTH:.2f}%"


def _down(scale: AxisScale, value: float) -> int:
    return round((1 - scale.share(value)) * HEIGHT)
