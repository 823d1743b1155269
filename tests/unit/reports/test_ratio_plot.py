"""Ratios as a plot out of characters: what stands where."""

import math
import re

import pytest

from orchestrator.reports.ratio_plot import MOST_CELLS, RatioScale, cells_for


def scale(*ratios: float, cells: int = 41) -> RatioScale:
    return RatioScale.over([(value, value * 0.98, value * 1.02) for value in ratios], cells)


def test_equal_distances_on_the_line_are_equal_factors():
    of = scale(0.25, 4.0)
    assert of.cell_of(1.0) == 20
    assert of.cell_of(2.0) - of.cell_of(1.0) == of.cell_of(1.0) - of.cell_of(0.5)


def test_one_is_always_on_it_and_marked():
    for ratios in ((3.0, 4.0), (0.1, 0.2), (1.0,), ()):
        line = scale(*ratios).line(None, None, None)
        assert line.count("│") == 1
        assert line.strip() == "│"


@pytest.mark.parametrize(
    ("verdict", "mark"), [("slower", "▲"), ("faster", "▼"), ("same", "="), ("inconclusive", "?"), (None, "●")]
)
def test_a_ratio_is_the_mark_of_its_verdict_on_its_interval(verdict, mark: str):
    of = scale(0.5, 2.0)
    line = of.line(1.5, 1.2, 1.9, verdict)
    assert line[of.cell_of(1.5)] == mark
    assert set(line[of.cell_of(1.2) : of.cell_of(1.9) + 1]) == {"─", mark}
    assert line[of.cell_of(1.0)] == "│"
    assert len(line) == 41


def test_noise_that_is_wider_than_the_ratios_lie_apart_is_cut_and_that_is_seen():
    of = RatioScale.over([(1.0, 0.98, 1.02), (1.5, 0.01, 400.0)], 40)
    line = of.line(1.5, 0.01, 400.0, "inconclusive")
    assert (line[0], line[-1]) == ("◂", "▸")
    assert math.exp(of.high - of.low) < 5


def test_small_differences_do_not_fill_the_line():
    of = scale(1.01)
    assert abs(of.cell_of(1.01) - of.cell_of(1.0)) <= 3


@pytest.mark.parametrize("ratios", [(1.0, 20.0), (0.05, 1.0), (0.5, 2.0), (1.0,), (300.0, 0.002)])
@pytest.mark.parametrize("cells", [12, 20, 40])
def test_the_header_says_where_one_is_and_fits(ratios: tuple[float, ...], cells: int):
    of = scale(*ratios, cells=cells)
    header = of.header()
    assert len(header) == cells
    one = re.search(r"(?<![\d.])1x", header)
    assert one is not None
    assert abs(one.start() - of.cell_of(1.0)) <= 1


def test_a_strip_takes_the_room_that_is_left_within_bounds():
    assert cells_for(70, [10, 10, 10]) == 70 - 1 - 36
    assert cells_for(40, [20, 20]) == 12
    assert cells_for(300, [10]) == MOST_CELLS
