"""Whether a figure of the page meets its target, and whether it is worse than before."""

import pytest

from bench.figures import Before, Figure, compare, judge, table

CPU = "AMD EPYC"


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        (Figure("cold build", 0.86, "ratio", limit=1.2), "met"),
        (Figure("cold build", 1.2, "ratio", limit=1.2), "met"),
        (Figure("warm run", 2.19, "s", limit=2.0), "**missed by 0.19 s**"),
        (Figure("inside", 0.8, "share", "most", 0.8), "met"),
        (Figure("inside", 0.63, "share", "most", 0.8), "**missed by 17 points**"),
        (Figure("false alarms", 0, "count", limit=0), "met"),
        (Figure("false alarms", 1, "count", limit=0), "**missed by 1**"),
        (Figure("added", 190, "ns"), ""),
        # The whole meets it, and the limits of a part exclude it; or the limits of all parts reach it.
        (Figure("found", 0.95, "share", "most", 0.9, bound=0.85), "**missed by 5 points**"),
        (Figure("found", 0.95, "share", "most", 0.9, bound=0.98), "met"),
        (Figure("called", 0.02, "share", "least", 0.025, bound=0.035), "**missed by 1 point**"),
        (Figure("called", 0.02, "share", "least", 0.025, bound=0.0), "met"),
    ],
)
def test_a_target_is_met_or_missed_by_a_distance(figure, told):
    assert judge(figure) == told


@pytest.mark.parametrize(
    ("figure", "before", "told"),
    [
        (Figure("report", 8.2, "s"), 1.88, "**worse**: 1.88 s on 2026-11-21"),
        (Figure("report", 1.5, "s"), 1.88, "better: 1.88 s on 2026-11-21"),
        (Figure("inside", 0.63, "share", "most"), 0.94, "**worse**: 94% on 2026-11-21"),
        (Figure("inside", 0.97, "share", "most"), 0.94, "better: 94% on 2026-11-21"),
        # Nobody sees a difference.
        (Figure("report", 1.8801, "s"), 1.8799, "1.88 s on 2026-11-21"),
    ],
)
def test_a_figure_is_worse_or_better_than_before_as_far_as_can_be_seen(figure, before, told):
    known = Before("2026-11-21", CPU, {figure.name: before})
    assert compare(figure, known, CPU) == told
    assert compare(figure, known, "another") == f"{told}, {CPU}"


def test_a_figure_that_is_new_has_nothing_before_it():
    assert compare(Figure("new", 1, "s"), Before("2026-11-21", CPU, {"old": 1.0}), CPU) == ""


def test_the_table_has_a_row_for_each_figure_with_what_the_shared_functions_say():
    figure = Figure("warm run", 2.19, "s", limit=2.0, detail="the best of 3")
    [_, _, row] = table([figure], Before("2026-11-21", CPU, {"warm run": 2.52}), CPU)
    assert row == (
        "| warm run | 2.19 s (the best of 3) | at most 2.00 s | **missed by 0.19 s** | better: 2.52 s on 2026-11-21 |"
    )
    assert table([]) == []
