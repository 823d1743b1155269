"""The rows of a series: one for each night, and segment by segment."""

from dataclasses import replace

from orchestrator.history.night_rows import rows
from tests.support.nights import FIRST, history, series_of


def test_a_night_in_two_surroundings_has_a_row_in_both_segments():
    (point,) = history(1, 1, ("2.0.0",), control=False)
    moved = replace(point, run="later", surroundings=replace(point.surroundings, source="another"))
    (series,) = series_of([point, moved]).values()
    found = rows(series)
    assert [(row.night, row.segment) for row in found] == [(FIRST, 0), (FIRST, 1)]
    assert [row.value for row in found] == [segment.values[0] for segment in series.segments]
    assert found[1].changed == ("source of the workload: made -> another",)


def test_every_value_of_a_series_has_its_row(points):
    for series in series_of(points).values():
        assert tuple(row.value for row in rows(series) if row.value) == series.values
        assert {point for row in rows(series) for point in row.points} == set(series.points)
