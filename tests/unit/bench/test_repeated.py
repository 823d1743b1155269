"""The benchmark of known series counts alarms without a cause, and changes without an alarm."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bench.repeated import RECOVERED, SLOWER, STORIES, Story, count_errors, events_of
from orchestrator.history.model import AlarmOpened, Event, Key

Found = Sequence[tuple[int, Event, Key]]
STEP = Story(steps={14: 1.5, 17: 1 / 1.5}, expected={14: SLOWER, 17: RECOVERED})


@pytest.fixture(scope="module")
def found() -> Found:
    return events_of(STEP)


def known(found: Found) -> Found:
    return [
        (
            night,
            replace(event, alarm=replace(event.alarm, state="known")) if isinstance(event, AlarmOpened) else event,
            key,
        )
        for night, event, key in found
    ]


@pytest.mark.parametrize(
    ("expected", "change", "errors"),
    [
        (STEP.expected, list, (0, 0)),
        (STEP.expected, lambda found: [], (0, 2)),
        (STEP.expected, lambda found: [*found, found[0]], (1, 0)),
        # What is known from the start is not news where it should be.
        (STEP.expected, known, (1, 1)),
        ({}, list, (2, 0)),
        ({17: RECOVERED}, list, (1, 0)),
        # Too late, or before it happened.
        ({11: SLOWER, 17: RECOVERED}, list, (1, 1)),
        ({15: SLOWER, 17: RECOVERED}, list, (1, 1)),
    ],
)
def test_false_and_missed_alarms_are_counted(found: Found, expected, change: Callable[[Found], Found], errors):
    assert count_errors(replace(STEP, expected=expected), change(found)) == errors


def test_a_story_without_a_change_expects_none():
    calm = STORIES["results are equal, another driver"]
    assert count_errors(calm, events_of(calm)) == (0, 0)
