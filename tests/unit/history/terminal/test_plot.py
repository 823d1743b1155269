"""The picture of a series fits its width, says when, and shows steps, borders and nights without a time."""

import sys
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.text import Text

from orchestrator.history.model import Series
from orchestrator.history.night_rows import rows
from orchestrator.history.terminal import plot
from orchestrator.terminal.std_streams import guard
from orchestrator.terminal.text import print_table
from tests.support.kept import kept
from tests.support.nights import history, series_of

CASE = "power[style=eager]"


def series(nights: int, **changes) -> Series:
    made = history(nights, (CASE,), ("2.13.0",), 3, control=False, **changes)
    (found,) = series_of(made).values()
    return found


def with_holes_and_a_border(nights: int) -> Series:
    made = history(nights, (CASE,), ("2.13.0",), 3, control=False)
    border = made[nights // 2].night
    made = [
        replace(point, surroundings=replace(point.surroundings, source="another")) if point.night >= border else point
        for point in made
    ]
    hole = replace(made[3], outcome="died", reason="killed", effect=None, error=None, rounds=0)
    (found,) = series_of([*made[:3], hole, *made[4:]]).values()
    return found


@pytest.mark.parametrize("nights", [1, 2, 3, 30, 200, 730])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_plot_is_no_wider_than_it_may_be(nights: int, width: int):
    lines = plot.plot(rows(series(nights)), {}, width)
    assert len(lines) >= plot.HEIGHT + 2
    assert all(cell_len(line) <= width for line in lines if "a column covers" not in line)


@pytest.mark.parametrize(("nights", "width"), [(1, 80), (3, 80), (30, 80), (200, 80), (200, 120)])
def test_a_plot_is_what_the_snapshot_shows(nights: int, width: int):
    of = with_holes_and_a_border(nights) if nights > 4 else series(nights)
    step = rows(of)[nights // 3].night
    found = "\n".join(plot.plot(rows(of), {step: "slower"}, width)) + "\n"
    assert found == kept(f"history-plot-{nights}-{width}", found)


def test_every_night_has_its_point_and_a_step_its_mark():
    of = rows(with_holes_and_a_border(20))
    lines = plot.plot(of, {of[8].night: "faster"}, 80)
    picture = lines[: plot.HEIGHT]
    assert sum(line.count(plot.POINT) for line in picture) == 19
    assert all(plot.BORDER in line for line in picture)
    marks = next(line for line in lines[plot.HEIGHT :] if plot.MISSING in line)
    assert marks.count(plot.MISSING) == 1
    assert marks.count("▼") == 1
    # The mark stands beneath the point that it is about.
    column = marks.index("▼")
    assert any(line[column : column + 1] == plot.POINT for line in picture)
    assert str(of[0].night) in lines[-1]
    assert str(of[-1].night) in lines[-1]


def test_many_nights_share_columns_and_the_plot_says_so():
    lines = plot.plot(rows(series(730)), {}, 80)
    assert lines[-1].strip() == "a column covers 11 nights: their median, and a line from the lowest to the highest"


def test_where_everything_changes_every_night_there_is_still_a_plot():
    made = history(60, (CASE,), ("2.13.0",), 3, control=False)
    made = [replace(one, surroundings=replace(one.surroundings, source=one.run)) for one in made]
    (of,) = series_of(made).values()
    assert len(of.segments) == 60
    lines = plot.plot(rows(of), {}, 80)
    assert sum(line.count(plot.POINT) for line in lines) == 60
    assert not any(plot.BORDER in line for line in lines)


def test_one_freak_night_is_cut_at_the_edge_and_not_left_out():
    made = history(10, (CASE,), ("2.13.0",), 3, control=False)
    made[4] = replace(made[4], error=3.0)
    (of,) = series_of(made).values()
    lines = plot.plot(rows(of), {}, 80)
    assert plot.CUT_HIGH in lines[0]
    assert plot.CUT_LOW in lines[plot.HEIGHT - 1]
    assert sum(line.count(plot.POINT) for line in lines) == 10


def test_without_any_time_there_is_no_plot():
    made = [
        replace(one, outcome="died", reason="killed", effect=None, error=None, rounds=0)
        for one in history(3, (CASE,), ("2.13.0",), control=False)
    ]
    (of,) = series_of(made).values()
    assert plot.plot(rows(of), {}, 80) == []
    assert plot.sparkline(rows(of), 10) == "···"


def test_a_line_of_nights_rises_with_a_step_and_shows_holes_and_borders():
    of = rows(series(20, steps={(CASE, "2.13.0"): {10: 1.5}}))
    line = plot.sparkline(of, 20)
    assert len(line) == 20
    assert max(line[:10]) < min(line[10:])
    line = plot.sparkline(rows(with_holes_and_a_border(20)), 30)
    assert (line.index(plot.GAP), line.index(plot.BORDER), len(line)) == (3, 10, 21)
    assert len(plot.sparkline(rows(with_holes_and_a_border(20)), 8)) == 8


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_cannot_write_it_gets_ascii_of_the_same_width(monkeypatch, tmp_path, encoding: str):
    lines = plot.plot(rows(with_holes_and_a_border(30)), {}, 80)
    with (tmp_path / "out").open("w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setenv("COLUMNS", "80")
        guard()
        print_table(lambda width: Text("\n".join(lines)))
        plot.print_unbroken([Text("▲ 1.10x")])
        sys.stdout.flush()
    found = (tmp_path / "out").read_text(encoding).splitlines()
    assert list(map(len, found[:-1])) == list(map(len, lines))
    assert found[-1] == ("▲ 1.10x" if encoding == "utf-8" else "^ 1.10x")
    assert "\n".join(found).isascii() == (encoding != "utf-8")
