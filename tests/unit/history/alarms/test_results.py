"""Results of a case, night after night: an alarm begins when they no longer equal the reference's, and ends in time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from orchestrator.history.alarms import state
from orchestrator.history.alarms.judge import judge_night
from orchestrator.history.model import Alarm, AlarmOpened, Event, Key, Point, State, StateChanged
from orchestrator.history.wording import describe_alarm, describe_levels
from tests.support.nights import FIRST, SURROUNDINGS, history, series_of

RUNS = Path("history/runs")
EQUAL, NEAR, DIFFERS, UNKNOWN = "equal", "equal within tolerance", "differs", "not comparable"


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def nights(verdicts: Sequence[str], difference: float | None = 0.02, **changes: object) -> list[Point]:
    """A point of results for each of these verdicts, from the first night on."""
    blank = history(1, 1, ("nightly",), control=False)[0]
    none = {"effect": None, "error": None, "rounds": 0, "reference_figure": None}
    return [
        replace(
            blank,
            **none,
            metric="output",
            night=day(number),
            started=blank.started + timedelta(days=number),
            build=f"2.22.0.dev2024010{number + 1}",
            verdict=verdict,
            target_figure=difference if verdict == DIFFERS else None,
            **changes,
        )
        for number, verdict in enumerate(verdicts)
    ]


def lived(points: Sequence[Point], says: Mapping[int, State] | None = None) -> tuple[list[Event], tuple[Alarm, ...]]:
    """The events of every night, and the alarms that are left of them; a user may say something of the open ones."""
    events: list[Event] = []
    for night in sorted({point.night for point in points}):
        so_far = [point for point in points if point.night <= night]
        own: set[Key] = {point.key for point in points if point.night == night}
        now = datetime.combine(night, time(4), UTC)
        events += judge_night(series_of(so_far), state.current(events), night, now, own, RUNS).events
        if said := (says or {}).get((night - FIRST).days):
            is_open = filter(state.is_open_alarm, state.current(events))
            events += [
                StateChanged(at=now + timedelta(hours=1), alarm=alarm.id, state=said, note="so") for alarm in is_open
            ]
    return events, state.current(events)


def states(events: Sequence[Event]) -> list[tuple[str, int]]:
    """What each event said, and on which night."""
    said = []
    for event in events:
        if isinstance(event, AlarmOpened):
            said.append(("opened", (event.alarm.night - FIRST).days))
        elif isinstance(event, StateChanged) and event.night:
            said.append((event.state, (event.night - FIRST).days))
    return said


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([EQUAL] * 4, []),
        ([EQUAL, NEAR, EQUAL, NEAR], []),
        ([EQUAL, EQUAL, DIFFERS], [("opened", 2)]),
        ([EQUAL, NEAR, DIFFERS, DIFFERS], [("opened", 2), ("confirmed", 3)]),
        # What differs from the first night on is no change.
        ([DIFFERS] * 4, []),
        ([EQUAL, DIFFERS, DIFFERS], []),
        # A night that tells nothing is none.
        ([EQUAL, UNKNOWN, EQUAL, UNKNOWN, DIFFERS], [("opened", 4)]),
        ([EQUAL, EQUAL, DIFFERS, UNKNOWN, UNKNOWN], [("opened", 2)]),
        # Back and forth is one alarm.
        ([EQUAL, EQUAL, DIFFERS, EQUAL, DIFFERS, EQUAL], [("opened", 2), ("confirmed", 4)]),
        ([EQUAL, EQUAL, DIFFERS, EQUAL, EQUAL], [("opened", 2), ("recovered", 4)]),
        (
            [EQUAL, EQUAL, DIFFERS, EQUAL, EQUAL, DIFFERS],
            [("opened", 2), ("recovered", 4), ("opened", 5)],
        ),
    ],
)
def test_an_alarm_is_about_what_was_equal_before(verdicts: list[str], expected: list[tuple[str, int]]):
    assert states(lived(nights(verdicts))[0]) == expected


def test_an_alarm_says_what_differs_and_how_to_look_for_its_cause():
    _, [alarm] = lived(nights([EQUAL, EQUAL, DIFFERS]))
    assert describe_alarm(alarm) == "results differ by 2%"
    assert describe_levels(alarm) == f"its results were equal until {day(1)}"
    assert (alarm.change.first, alarm.change.last, alarm.change.ratio) == (day(2), day(1), 1.02)
    assert alarm.surroundings == ("nightly: 2.22.0.dev20240102 -> 2.22.0.dev20240103",)
    assert alarm.bisect.endswith("--engine venv --metric output")
    assert "--good nightly-20240102 --bad nightly-20240103" in alarm.bisect
    assert alarm.reproduce.endswith("--control --metric output")
    assert alarm.why.endswith("--engine venv --metric output")


def test_what_has_no_share_has_a_reason():
    points = nights([EQUAL, EQUAL, DIFFERS], difference=None)
    _, [alarm] = lived([*points[:2], replace(points[2], reason="float32[3], not float32[2]")])
    assert describe_alarm(alarm) == "results differ (float32[3], not float32[2])"
    assert alarm.change.ratio == 2.0
    _, [alarm] = lived(nights([EQUAL, EQUAL, DIFFERS], difference=26.0))
    assert alarm.change.ratio == 2.0
    assert describe_alarm(alarm) == "results differ by 2600%"
    assert math.isfinite(alarm.change.p)


@pytest.mark.parametrize("what", ["driver", "reference_image", "source", "worker"])
def test_what_else_changed_that_night_hides_no_other_results(what: str):
    points = nights([EQUAL, EQUAL, DIFFERS, DIFFERS])
    before, after = (replace(SURROUNDINGS, **{what: which}) for which in ("old", "new"))
    points = [replace(point, surroundings=after if point.night >= day(2) else before) for point in points]
    events, [alarm] = lived(points)
    assert states(events) == [("opened", 2), ("confirmed", 3)]
    assert any(text.endswith(": old -> new") for text in alarm.surroundings)
    same = [replace(point, verdict=EQUAL, target_figure=None) for point in points]
    assert lived(same) == ([], ())


def differing(*shares: float | None) -> list[Point]:
    """Two nights with equal results, and some that differ by these shares."""
    points = nights([EQUAL, EQUAL, *[DIFFERS if share != 0.0 else EQUAL for share in shares]])
    return [replace(point, target_figure=share) for point, share in zip(points, (0.0, 0.0, *shares), strict=True)]


@pytest.mark.parametrize("said", ["known", "muted", None])
def test_results_that_differ_by_much_more_are_another_alarm(said: State | None):
    events, _ = lived(differing(0.001, 0.001, 0.002, 5.0, 5.0), {3: said} if said else {})
    assert [what for what in states(events) if what[0] == "opened"] == [("opened", 2), ("opened", 5)]
    first, second = (event.alarm for event in events if isinstance(event, AlarmOpened))
    assert (first.said, second.said) == ("results differ by 0.1%", "results differ by 500%")
    assert describe_levels(second) == f"its results differed by less until {day(4)}"
    assert second.id != first.id


def test_results_that_differ_a_little_more_are_no_other_alarm():
    events, _ = lived(differing(0.001, 0.001, 0.004, 0.002, 0.004), {3: "known"})
    assert [what for what in states(events) if what[0] == "opened"] == [("opened", 2)]


def test_each_difference_ends_where_the_one_before_was():
    events, alarms = lived(differing(0.001, 0.001, 5.0, 5.0, 0.001, 0.001, 0.0, 0.0))
    assert states(events) == [
        ("opened", 2), ("confirmed", 3), ("opened", 4), ("confirmed", 5), ("recovered", 7), ("recovered", 9)
    ]  # fmt: skip
    assert {alarm.state for alarm in alarms} == {"recovered"}


def test_a_difference_that_has_no_share_is_more_than_any():
    events, _ = lived(differing(0.5, 0.5, None, None), {3: "known"})
    assert [what for what in states(events) if what[0] == "opened"] == [("opened", 2), ("opened", 4)]


def test_a_night_that_was_confirmed_counts_by_what_it_said_last():
    points = nights([EQUAL, EQUAL, DIFFERS])
    again = replace(points[2], stage="confirm", verdict=EQUAL)
    assert lived([*points, again]) == ([], ())
