"""The history for programs: an object that keeps its schema, and rows of CSV."""

import json
from datetime import timedelta

import pytest
from jsonschema import Draft202012Validator

from orchestrator.history import json as objects
from orchestrator.history.alarms import steps
from orchestrator.history.model import Change, Key, Segment
from tests.conftest import ROOT
from tests.support import nights_shown as shown
from tests.support.nights import FIRST

SCHEMA = json.loads((ROOT / "docs" / "schema" / "history-1.json").read_text())


def find_changes(key: Key, segment: Segment) -> tuple[Change, ...]:
    return steps.changes(segment)


def test_changes_are_sought_in_all_nights_however_few_are_shown(points):
    one = next(
        one
        for one in objects.build_shown_series(
            shown.picked(points, case=shown.EAGER, last=25, targets=("nightly",)), (), find_changes
        )
    )
    assert [change.first for change in one.changes] == [FIRST + timedelta(days=shown.STEP)]
    assert objects.build_shown_series(shown.picked(points, last=25), ())[0].changes is None


@pytest.mark.parametrize("asked", [{}, {"case": shown.EAGER}, {"last": 3, "whole": True}])
def test_the_object_keeps_its_schema(points, alarm, asked: dict):
    Draft202012Validator.check_schema(SCHEMA)
    found = shown.picked(points, **asked)
    made = objects.history_as_object(
        objects.build_shown_series(found, [alarm], find_changes if len(found.cases) == 1 else None), [alarm], ["w"]
    )
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(made, allow_nan=False)))
    assert made["series"]
    assert all(one["shown"] for one in made["series"])


def test_the_rows_of_the_object_and_of_csv_are_the_same(points):
    listed = objects.build_shown_series(shown.picked(points, case=shown.EAGER), ())
    made = objects.history_as_object(listed, (), ())
    lines = objects.as_csv(listed).splitlines()
    assert lines[0].split(",") == list(objects.CSV)
    assert len(lines) - 1 == sum(len(one["shown"]) for one in made["series"])
    assert all(line.startswith(f'"{shown.EAGER}",') for line in lines[1:])
