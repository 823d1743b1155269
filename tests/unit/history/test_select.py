"""Which series and nights are shown, and what is said if nothing is."""

from datetime import date, timedelta

import pytest

from orchestrator.errors import NothingSelected
from orchestrator.history import json as objects
from orchestrator.history.select import matching
from tests.support import nights_shown as shown
from tests.support.nights import FIRST, history, of_metric


def test_the_last_nights_are_those_that_are_shown(points):
    found = shown.picked(points, case=shown.EAGER, last=5)
    assert found.first == FIRST + timedelta(days=shown.NIGHTS - 5)
    assert all(len(one.rows) == 5 for one in objects.build_shown_series(found, ()))
    assert shown.picked(points, case=shown.EAGER, last=1000).first == FIRST
    assert shown.picked(points, since=date(2024, 2, 1)).first == date(2024, 2, 1)


def test_a_version_is_found_by_its_short_name(points):
    assert {one.key.target for one in shown.picked(points, targets=("2.13", "nightly")).series} == {
        "2.13.0",
        "nightly",
    }


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"case": "train_lop"}, "did you mean train_loop?"),
        ({"targets": ("2.1",)}, "--version '2.1.4' matches nothing in this selection"),
        ({"targets": ("nihgtly",)}, "did you mean nightly?"),
        ({"hosts": ("elsewhere",)}, "available: host"),
        ({"engines": ("docker",)}, "available: venv"),
        ({"devices": ("gpu",)}, "available: cpu"),
        ({"metrics": ("leak",)}, "--metric leak: no night of the history has it; available: time"),
        ({"since": date(2030, 1, 1)}, "the newest night of this selection is 2024-02-29"),
    ],
)
def test_what_the_history_has_nothing_of_is_said(points, asked: dict, words: str):
    with pytest.raises(NothingSelected) as told:
        shown.picked(points, **asked)
    assert words in str(told.value)


def test_times_are_shown_unless_other_metrics_are_asked_for(points):
    both = [*points, *of_metric(points, "memory")]
    assert {one.key.metric for one in shown.picked(both).series} == {"time"}
    found = shown.picked(both, metrics=("memory", "time")).series
    assert {one.key.metric for one in found} == {"time", "memory"}
    assert shown.picked(both).series == shown.picked(points).series


def test_a_case_is_found_by_its_name_its_parameters_or_a_part_of_it():
    cases = (shown.EAGER, shown.GRAPH, shown.PREDICT)
    assert matching(shown.EAGER, cases) == (shown.EAGER,)
    assert matching("train_loop", cases) == (shown.EAGER, shown.GRAPH)
    assert matching("train_loop[mode=graph]", cases) == (shown.GRAPH,)
    assert matching("train_loop[model=small,mode=graph]", cases) == (shown.GRAPH,)
    assert matching("EAGER", cases) == (shown.EAGER,)
    assert matching("train", cases) == (shown.EAGER, shown.GRAPH)
    assert matching("jit", cases) == ()


def test_two_years_of_many_cases_are_an_overview_in_seconds():
    """What is shown of it is read, and no more."""
    few = shown.picked(history(500, 20, control=False), targets=("2.0.0",))
    assert all(len(one.points) <= 61 for one in few.series)
    assert set(few.nights.values()) == {500}
