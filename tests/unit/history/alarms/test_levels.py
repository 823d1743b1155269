"""Levels of one series: a step is judged by the level right before it, and an alarm ends at the level before it."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.history.alarms import state
from orchestrator.history.alarms.judge import report_events
from orchestrator.history.model import AlarmOpened, NightReport, Point, SizeChanged, State, StateChanged
from orchestrator.history.surroundings import is_weekend
from orchestrator.history.wording import describe_alarm, describe_cause
from orchestrator.nightly.message import compose
from tests.support.judged_nights import (
    at,
    day,
    exit_codes,
    judged,
    lasting,
    lived,
    made,
    night_of,
    opened,
    report_of,
    what,
)
from tests.support.nights import SURROUNDINGS

STEP = 20


def test_what_comes_back_is_recovered_and_not_an_alarm_of_its_own():
    events = lived(made(40, {STEP: 1.2, STEP + 8: 1 / 1.2}), first=STEP - 2)
    [alarm] = opened(events)
    assert [event.state for event in events if isinstance(event, StateChanged)] == ["confirmed", "recovered"]
    assert [event.night for event in events if isinstance(event, StateChanged)][-1] <= day(STEP + 10)
    assert state.current(events)[0].state == "recovered"
    assert alarm.id == state.current(events)[0].id


def test_a_second_step_is_a_second_alarm():
    found = opened(lived(made(45, {STEP: 1.2, STEP + 12: 1.2}), first=STEP - 2))
    assert len(found) == 2
    assert len({alarm.id for alarm in found}) == 2


def test_a_freak_night_is_over_when_the_next_ones_say_so():
    points = made(STEP + 8, {STEP: 1.3, STEP + 1: 1 / 1.3})
    events = lived(points, first=STEP - 2)
    states = [event.state for event in events if isinstance(event, StateChanged)]
    assert len(opened(events)) == 1
    assert states[-1] == "recovered"
    [alarm] = state.current(events)
    assert alarm.state == "recovered"
    assert math.isclose(alarm.change.ratio, 1.3, rel_tol=0.1)


# The nights of each event, and what it was; a step is confirmed by the night after it.
LANDS, REVERTED, AGAIN = 30, 32, 35
FIRST_LANDING = [(LANDS, "slower"), (LANDS + 1, "confirmed"), (REVERTED, "recovered")]
REPEATED_STEPS = [
    pytest.param(
        {LANDS: 1.1, REVERTED: 1 / 1.1, AGAIN: 1.1}, [*FIRST_LANDING, (AGAIN, "slower"), (AGAIN + 1, "confirmed")],
        id="lands again within a week",
    ),
    pytest.param(
        {LANDS: 1.1, REVERTED: 1 / 1.1, AGAIN: 1.3}, [*FIRST_LANDING, (AGAIN, "slower"), (AGAIN + 1, "confirmed")],
        id="lands again, larger",
    ),
    pytest.param(
        {LANDS: 1.1, LANDS + 4: 1.1},
        [(LANDS, "slower"), (LANDS + 1, "confirmed"), (LANDS + 4, "slower"), (LANDS + 5, "confirmed")],
        id="a second step within a week",
    ),
    pytest.param(
        {LANDS: 1.1, REVERTED: 1 / 1.1, 45: 1.1}, [*FIRST_LANDING, (45, "slower"), (46, "confirmed")],
        id="lands again after two weeks",
    ),
    pytest.param(
        {LANDS: 0.9, 40: 1 / 0.9, 70: 1.045},
        [(LANDS, "faster"), (LANDS + 1, "confirmed"), (40, "recovered"), (40, "slower"), (41, "confirmed"),
         (70, "slower"), (71, "confirmed")],
        id="smaller than an improvement that ended long ago",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "expected"), REPEATED_STEPS)
def test_a_step_after_an_alarm_of_the_same_series_is_an_alarm_of_its_own(
    steps: dict[int, float], expected: list[tuple[int, str]]
):
    events = lived(lasting(max(steps) + 8, steps), first=LANDS - 2)
    assert [what(event) for event in events] == expected


def test_two_steps_that_are_reverted_together_both_recover():
    events = lived(lasting(50, {LANDS: 1.1, LANDS + 4: 1.1, 44: 1 / 1.21}), first=LANDS - 2)
    assert [alarm.change.direction for alarm in opened(events)] == ["slower", "slower"]
    assert [alarm.state for alarm in state.current(events)] == ["recovered", "recovered"]


def test_a_recovered_alarm_whose_step_is_still_there_is_raised_again():
    points = lasting(LANDS + 2, {LANDS: 1.1})
    tonight = day(LANDS + 1)
    [alarm] = opened(lived([point for point in points if point.night <= day(LANDS)], first=LANDS))
    closed = [
        AlarmOpened(at=alarm.opened, alarm=alarm),
        StateChanged(at=at(tonight), alarm=alarm.id, state="recovered", night=tonight),
    ]
    found = judged(points, closed, tonight)
    assert [(event.alarm, event.state) for event in found.events if isinstance(event, StateChanged)] == [
        (alarm.id, "new")
    ]
    night = night_of(tonight)
    told = report_events(NightReport(night=night), found, state.current([*closed, *found.events]), tonight)
    assert [one.id for one in told.opened] == [alarm.id]
    assert told.still == ()


def test_a_step_of_another_size_is_not_the_one_that_is_known():
    points = lasting(LANDS + 8, {LANDS: 1.05, LANDS + 1: 1.2})
    found = opened(lived(points, first=LANDS))
    assert len(found) == 2
    assert math.isclose(found[1].change.ratio, 1.05 * 1.2, rel_tol=0.05)
    assert found[0].id != found[1].id


# A level is left for another one on night 45.
BACK = 45


@pytest.mark.parametrize(
    ("to", "back_to", "undoes"),
    [(0.9, 1.04, ""), (0.9, 1.0, ""), (0.8, 0.9, "a part of "), (0.5, 0.75, "a part of ")],
)
def test_a_step_back_after_an_improvement_is_an_alarm(to: float, back_to: float, undoes: str):
    events = lived(lasting(BACK + 4, {LANDS: to, BACK: back_to / to}), first=LANDS - 2)
    faster, slower = opened(events)
    assert [faster.change.direction, slower.change.direction] == ["faster", "slower"]
    assert math.isclose(slower.change.ratio, back_to / to, rel_tol=0.02)
    assert describe_cause(slower)[0] == f"undoes {undoes}the improvement of {day(LANDS)}"
    assert exit_codes(events) == {BACK: 1}
    assert "1 slower" in compose(report_of(events, BACK)).title
    ends = [what(event) for event in events if getattr(event, "alarm", None) == faster.id]
    assert ends == [(LANDS + 1, "confirmed"), (BACK, "resized" if undoes else "recovered")]


def test_an_improvement_that_stays_is_no_alarm_of_anything_slower():
    events = lived(lasting(BACK + 4, {LANDS: 0.5}), first=LANDS - 2)
    assert [what(event) for event in events] == [(LANDS, "faster"), (LANDS + 1, "confirmed")]
    assert exit_codes(events) == {}


@pytest.mark.parametrize("said", ["known", "muted"])
def test_what_a_user_said_of_an_improvement_hides_no_step_back(said: State):
    events = lived(lasting(BACK + 3, {LANDS: 0.8, BACK: 1.19}), first=LANDS - 2, says={LANDS + 5: said})
    assert [alarm.change.direction for alarm in opened(events)] == ["faster", "slower"]
    assert exit_codes(events) == {BACK: 1}


def test_an_improvement_of_one_weekend_leaves_no_alarm_behind():
    saturday = next(number for number in range(LANDS, LANDS + 7) if is_weekend(day(number)))
    events = lived(lasting(saturday + 14, {saturday: 0.95, saturday + 2: 1 / 0.95}), first=LANDS - 2)
    assert [alarm.change.direction for alarm in opened(events)] == ["faster"]
    assert [alarm.state for alarm in state.current(events)] == ["recovered"]
    assert exit_codes(events) == {}


@pytest.mark.parametrize(("size", "left"), [(4.0, 1.9), (1.5, 1.2), (1.1, 1.04), (0.5, 0.75)])
def test_an_alarm_stays_open_with_what_is_left_of_it(size: float, left: float):
    events = lived(lasting(BACK + 20, {LANDS: size, BACK: left / size}), first=LANDS - 2)
    first = opened(events)[0]
    [alarm] = [alarm for alarm in state.current(events) if alarm.id == first.id]
    assert alarm.state == "confirmed"
    assert alarm.left == pytest.approx(left, rel=0.01)
    [resized] = [event for event in events if isinstance(event, SizeChanged)]
    assert resized.night == day(BACK)
    way = first.change.direction
    assert describe_alarm(alarm) == f"{alarm.left:.2f}x {way} now, {alarm.change.ratio:.2f}x at first"
    message = compose(report_of(events, BACK))
    assert "1 of another size" in message.title
    assert f"Changed in size: 1\n  {describe_alarm(alarm)}" in message.text


def test_what_is_left_of_an_alarm_ends_at_the_level_before_it():
    events = lived(lasting(BACK + 14, {LANDS: 4.0, BACK: 1.9 / 4, BACK + 10: 1 / 1.9}), first=LANDS - 2)
    assert [what(event) for event in events] == [
        (LANDS, "slower"), (LANDS + 1, "confirmed"), (BACK, "resized"), (BACK + 10, "recovered")
    ]  # fmt: skip
    [alarm] = state.current(events)
    assert describe_alarm(alarm).startswith("4.0")


def test_what_goes_past_the_level_before_an_alarm_is_an_alarm_too():
    events = lived(lasting(BACK + 3, {LANDS: 1.5, BACK: 0.8 / 1.5}), first=LANDS - 2)
    slower, faster = opened(events)
    assert [slower.change.direction, faster.change.direction] == ["slower", "faster"]
    assert (BACK, "recovered") in map(what, events)
    assert exit_codes(events) == {LANDS: 1}


CUT = LANDS + 10


@pytest.mark.parametrize(
    "changed",
    ["driver", "image", "reference_image", "source", "worker", "variables", "reference_variables", "settings"],
)
@pytest.mark.parametrize("then", [1.0, 1 / 1.08, 1 / 1.1])
def test_no_night_after_a_cut_ends_an_alarm_from_before_it(changed: str, then: float):
    """The reference may have become slower, too: what a version takes now says nothing of what it took then."""
    before, after = (replace(SURROUNDINGS, **{changed: which}) for which in ("old", "new"))
    points = [
        replace(point, surroundings=after if point.night >= day(CUT) else before)
        for point in lasting(CUT + 20, {LANDS: 1.1, CUT: then})
    ]
    events = lived(points, first=LANDS - 2)
    [alarm] = state.current(events)
    assert (alarm.state, alarm.left) == ("confirmed", None)
    [apart] = alarm.apart
    assert apart.endswith(": old -> new")
    assert [what(event) for event in events][2:] == [(CUT, "resized")]
    said = f"its surroundings have changed since, so no night can end it: {apart}"
    assert said in describe_cause(alarm)
    assert said in " ".join(compose(report_of(events, CUT)).text.split())


def after_a_pause(points: list[Point], days: int) -> list[Point]:
    """The same points, with so many days without a night before the cut."""
    pause = timedelta(days=days)
    return [
        replace(point, night=point.night + pause, started=point.started + pause) if point.night >= day(CUT) else point
        for point in points
    ]


@pytest.mark.parametrize("then", [1.0, 1 / 1.08, 1 / 1.1])
def test_no_night_after_sixty_days_without_one_ends_an_alarm_from_before_them(then: float):
    events = lived(after_a_pause(lasting(CUT + 20, {LANDS: 1.1, CUT: then}), 60), first=LANDS - 2)
    [alarm] = state.current(events)
    assert (alarm.state, alarm.left, alarm.apart) == ("confirmed", None, ("no night for 60 days",))
    assert [what(event) for event in events][2:] == [(CUT + 60, "resized")]
    said = "its surroundings have changed since, so no night can end it: no night for 60 days"
    assert said in " ".join(compose(report_of(events, CUT + 60)).text.split())


@pytest.mark.parametrize(("then", "ends"), [(1.0, []), (1 / 1.1, [(CUT + 59, "recovered")])])
def test_after_a_day_less_nights_are_compared_as_ever(then: float, ends: list[tuple[int, str]]):
    events = lived(after_a_pause(lasting(CUT + 20, {LANDS: 1.1, CUT: then}), 59), first=LANDS - 2)
    assert [what(event) for event in events][2:] == ends
    [alarm] = state.current(events)
    assert alarm.apart == ()


def test_an_improvement_from_before_a_cut_hides_no_step_after_it():
    before, after = (replace(SURROUNDINGS, worker=which) for which in ("old", "new"))
    points = [
        replace(point, surroundings=after if point.night >= day(CUT) else before)
        for point in lasting(CUT + 25, {LANDS: 0.8, CUT + 20: 1.19})
    ]
    events = lived(points, first=LANDS - 2)
    assert [(alarm.change.direction, alarm.undoes) for alarm in opened(events)] == [("faster", ""), ("slower", "")]
    assert exit_codes(events) == {CUT + 20: 1}
