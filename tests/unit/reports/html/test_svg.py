"""Scales whose ticks are where their values are, and paths from which the drawn points can be read again."""

import math
import re
from itertools import accumulate

import pytest
from markupsafe import Markup

from orchestrator.reports.html import svg


def points(d: str) -> list[tuple[int, ...]]:
    figures = list(map(int, re.findall(r"-?\d+", d.replace("h0", ""))))
    return list(zip(accumulate(figures[::2]), accumulate(figures[1::2]), strict=True))


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.9, 1.2, ["0.9", "1.0", "1.1", "1.2"]),
        (182, 357, ["200", "250", "300", "350"]),
        (0.02, 30, ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]),
        (1.0, 1.0, ["0.95", "1.00", "1.05"]),
    ],
)
def test_ticks_are_round_and_lie_on_the_scale(low: float, high: float, labels: list[str]) -> None:
    scale = svg.fit_scale([low, high, None, math.nan, math.inf, 0.0, -1.0])
    ticks = scale.ticks(5)
    assert [f"{value:.{digits}f}" for value, digits in ticks] == labels
    places = [scale.x(value) for value, _ in ticks]
    assert places == sorted(places)
    assert 0 <= places[0] < places[-1] <= svg.WIDTH


def test_equal_factors_are_equally_far_apart_and_twice_is_not_half() -> None:
    scale = svg.fit_scale([0.5, 2.0])
    assert scale.x(2.0) - scale.x(1.0) == scale.x(1.0) - scale.x(0.5) > 900
    assert scale.percent(1.0) == "50.00%"
    assert float(scale.percent(2.0)[:-1]) > 90 > 10 > float(scale.percent(0.5)[:-1])


@pytest.mark.parametrize("values", [[], [0.0], [1e-320], [1.7e308], [1.7e308, 1e-320], [math.nan]])
def test_figures_of_any_size_have_a_scale(values: list[float]) -> None:
    scale = svg.fit_scale(values)
    assert all(math.isfinite(value) for value, _ in scale.ticks(5))
    assert all(-9 * svg.WIDTH <= scale.x(value) <= 10 * svg.WIDTH for value in (0.0, 1e-320, 1.0, 1e308))


@pytest.mark.parametrize("drawn", [[(0, 5)], [(0, 5), (1, -3), (2, -3), (5, 10)], [(-4, -1), (0, 0)]])
def test_drawn_points_can_be_read_again(drawn: list[tuple[int, int]]) -> None:
    assert points(svg.write_line(drawn)) == drawn
    assert points(svg.write_dots(drawn)) == drawn


def test_what_is_no_markup_is_escaped_in_text_and_attributes() -> None:
    made = svg.element("b", "<i>\u202e", Markup("<u></u>"), title='"><script>', class_="", data_width=2)
    assert made == '<b title="&#34;&gt;&lt;script&gt;" data-width="2">&lt;i&gt;\\u202e<u></u></b>'
