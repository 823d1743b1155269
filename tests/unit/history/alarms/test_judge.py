"""What a night means for people: alarms that begin, hold, end; what came and went; what is told and raises none."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from orchestrator.history.alarms import state
from orchestrator.history.alarms.judge import NightVerdict, judge, report_events
from orchestrator.history.model import Alarm, AlarmOpened, Event, Moved, Night, NightReport, Point
from orchestrator.history.wording import describe_alarm
from tests.support.nights import FIRST, SURROUNDINGS, history, labels, series_of

RUNS = Path("history/runs")
[CASE] = labels(1)
STEP = 20


def at(night: date) -> datetime:
    return datetime.combine(night, time(4), UTC)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def made(nights: int, steps: Mapping[int, float], versions: tuple[str, ...] = ("2.0.0",), **changes: object):
    """Thirty rounds a night, as nights have that were confirmed."""
    points = history(nights, 1, versions, steps={(CASE, versions[0]): steps}, noise=0.02, **changes)
    return [replace(point, rounds=40 if point.version == versions[0] else 10) for point in points]


def judged(points: list[Point], events: list[Event], tonight: date) -> NightVerdict:
    own = {point.key for point in points if point.night == tonight}
    so_far = [point for point in points if point.night <= tonight]
    alike = {point.run for point in so_far}
    return judge(series_of(so_far), state.current(events), tonight, at(tonight), own, RUNS, alike)


def lived(points: list[Point], first: int = 0) -> list[Event]:
    """The events of every night, one after another."""
    events: list[Event] = []
    for night in sorted({point.night for point in points}):
        if night >= day(first):
            events += judged(points, events, night).events
    return events


def opened(events: list[Event]) -> list[Alarm]:
    return [event.alarm for event in events if isinstance(event, AlarmOpened)]


def night_of(tonight: date) -> Night:
    return Night(
        at=at(tonight), night=tonight, started=at(tonight), host="host", suite="made", versions=("2.0.0",),
        run="r", outcome="measured", said=(), cells=1, screened=1, confirmed=1, exit_code=0,
    )  # fmt: skip


def test_nights_that_are_alike_raise_nothing():
    assert lived(made(40, {})) == []


def test_a_step_is_one_alarm_on_its_first_night_and_confirmed_by_the_next():
    events = lived(made(30, {STEP: 1.15}), first=STEP - 2)
    [alarm] = opened(events)
    assert alarm.found_by == "night"
    assert alarm.change.first == day(STEP)
    assert alarm.change.last == day(STEP - 1)
    assert alarm.change.direction == "slower"
    assert alarm.change.ci_low < alarm.change.ratio < alarm.change.ci_high
    assert math.isclose(alarm.change.ratio, 1.15, rel_tol=0.02)
    assert alarm.opened == at(day(STEP))
    assert [(event.state, event.night) for event in events if isinstance(event, Moved)] == [
        ("confirmed", day(STEP + 1))
    ]


def test_memory_is_an_alarm_in_its_own_words_and_says_nothing_of_times():
    times = made(30, {})
    memory = [replace(point, metric="peak_rss", reference_ms=None, version_ms=None) for point in made(30, {STEP: 1.15})]
    events = lived([*times, *memory], first=STEP - 2)
    [alarm] = opened(events)
    assert alarm.key.metric == "peak_rss"
    assert alarm.key.id != replace(alarm.key, metric="steady").id
    assert re.fullmatch(r"1\.1\dx more peak memory \(1\.1\d-1\.1\d\)", describe_alarm(alarm))
    assert alarm.reproduce.endswith("--metric memory")
    assert alarm.profile == "", "a profile is of times"


def rebooted(cases: int, moved: int, **changes: str) -> list[Point]:
    """The machine reboots just before the step. Only the first cases show the step."""
    names = labels(cases)
    points = history(26, cases, ("2.0.0",), steps={(name, "2.0.0"): {STEP: 1.15} for name in names[:moved]}, noise=0.02)
    before, after = (replace(SURROUNDINGS, boot=boot) for boot in ("2024-01-01 08:00 UTC a", "2024-01-20 23:00 UTC b"))
    return [
        replace(
            point,
            rounds=40 if point.version == "2.0.0" else 10,
            surroundings=replace(after, **changes) if point.night >= day(STEP) else before,
        )
        for point in points
    ]


def test_steps_of_several_cases_that_begin_with_a_reboot_are_one_notice_and_known():
    points = rebooted(4, 3)
    events = lived(points, first=STEP)
    found = opened(events)
    assert {alarm.state for alarm in found} == {"known"}
    assert len({alarm.key.case for alarm in found}) == 3
    note = "began when the machine changed: boot: 2024-01-01 08:00 UTC -> 2024-01-20 23:00 UTC"
    assert {alarm.note for alarm in found} == {note}
    tonight = judged(points, [], day(STEP))
    [notice] = tonight.warnings
    assert notice.startswith(f"3 series of host host {note}; suspect the machine")
    report = report_events(NightReport(night=night_of(day(STEP))), tonight, state.current(tonight.events), day(STEP))
    assert report.opened == ()
    assert len(report.still) == 3


def test_a_step_of_one_case_after_a_reboot_is_an_alarm():
    [alarm] = opened(lived(rebooted(4, 1), first=STEP))
    assert alarm.state == "new"
    assert any(text.startswith("boot: ") for text in alarm.surroundings)


def test_a_metric_that_is_new_makes_no_case_new():
    times = made(12, {})
    memory = [replace(point, metric="peak_rss") for point in times if point.night >= day(6)]
    found = judged([*times, *memory], [], day(6))
    assert (found.appeared, found.vanished) == ((), ())
    assert judged([*times, *memory[:-2]], [], day(11)).vanished == ()


@pytest.mark.parametrize(("size", "waits"), [(1.06, True), (1.15, False)])
def test_a_small_step_of_one_night_waits_for_a_second_one(size: float, waits: bool):
    points = made(30, {STEP: size})
    first = judged(points, [], day(STEP))
    [alarm] = opened(list(first.events))
    assert alarm.is_provisional == waits
    second = judged(points, list(first.events), day(STEP + 1))
    after = state.current([*first.events, *second.events])
    report = report_events(NightReport(night=night_of(day(STEP + 1))), second, after, day(STEP + 1))
    assert [each.id for each in report.confirmed] == ([alarm.id] if waits else [])


def test_an_improvement_is_an_alarm_too():
    [alarm] = opened(lived(made(30, {STEP: 0.85}), first=STEP - 2))
    assert alarm.change.direction == "faster"


def test_what_comes_back_is_recovered_and_not_an_alarm_of_its_own():
    events = lived(made(40, {STEP: 1.2, STEP + 8: 1 / 1.2}), first=STEP - 2)
    [alarm] = opened(events)
    assert [event.state for event in events if isinstance(event, Moved)] == ["confirmed", "recovered"]
    assert [event.night for event in events if isinstance(event, Moved)][-1] <= day(STEP + 10)
    assert state.current(events)[0].state == "recovered"
    assert alarm.id == state.current(events)[0].id


def test_a_second_step_is_a_second_alarm():
    found = opened(lived(made(45, {STEP: 1.2, STEP + 12: 1.2}), first=STEP - 2))
    assert len(found) == 2
    assert len({alarm.id for alarm in found}) == 2


def test_a_muted_alarm_is_neither_opened_again_nor_told():
    points = made(30, {STEP: 1.2})
    events = lived(points[: len(points) // 30 * (STEP + 2)], first=STEP - 2)
    [alarm] = opened(events)
    later = at(day(STEP + 1)) + timedelta(hours=3)
    events.append(Moved(at=later, alarm=alarm.id, state="muted", note="the new driver"))
    for number in range(STEP + 2, 30):
        assert judged(points, events, day(number)).events == ()
    [muted] = state.current(events)
    assert (muted.state, muted.note) == ("muted", "the new driver")
    assert state.is_open(muted)
    assert not state.is_listed(muted, day(29))


def test_a_mute_ends_on_its_day():
    alarm = opened(lived(made(STEP + 1, {STEP: 1.2}), first=STEP))[0]
    until = replace(alarm, state="muted", until=day(25))
    assert not state.is_listed(until, day(25))
    assert state.is_listed(until, day(26))


@pytest.mark.parametrize("what", ["image", "driver", "source", "worker"])
def test_another_image_driver_source_or_worker_is_listed_and_is_no_alarm(what: str):
    points = [
        replace(point, surroundings=replace(SURROUNDINGS, **{what: "other" if point.night >= day(STEP) else "first"}))
        for point in made(30, {STEP: 1.5})
    ]
    assert lived(points) == []
    [note] = judged(points, [], day(STEP)).notes
    assert "-> other" in note
    assert "new segment in 1 series" in note
    assert judged(points, [], day(STEP + 1)).notes == ()


def test_an_alarm_names_what_changed_that_night_and_how_to_look_into_it():
    points = [
        replace(point, surroundings=replace(SURROUNDINGS, kernel="6.2")) if point.night >= day(STEP) else point
        for point in made(30, {STEP: 1.2})
    ]
    [alarm] = opened(lived(points, first=STEP - 2))
    assert alarm.surroundings == ("kernel: 6.1 -> 6.2",)
    assert alarm.reproduce == (f"tfcompare run --versions 1.14.0,2.0.0 --case '{CASE}' --engine venv --control")
    before, after = ({point.run for point in points if point.night == day(n)}.pop() for n in (STEP - 1, STEP))
    # The same wheel as the night before: no release between them to search.
    assert alarm.bisect == f"tfcompare compare history/runs/{before} history/runs/{after}"
    assert alarm.profile == f"tfcompare profile --versions 1.14.0,2.0.0 --case '{CASE}' --engine venv"
    assert alarm.run == after


def test_of_a_nightly_tensorflow_the_days_between_are_searched():
    points = [
        replace(point, build=f"2.23.0.dev{point.night:%Y%m%d}") if point.version == "nightly" else point
        for point in made(30, {STEP: 1.2}, ("nightly",))
    ]
    [alarm] = opened(lived(points, first=STEP - 2))
    was, now = (f"{day(number):%Y%m%d}" for number in (STEP - 1, STEP))
    assert alarm.surroundings == (f"nightly: 2.23.0.dev{was} -> 2.23.0.dev{now}",)
    assert alarm.bisect == (f"tfcompare bisect --good nightly-{was} --bad nightly-{now} --case '{CASE}' --engine venv")
    assert f"--versions 1.14.0,2.23.0.dev{now} " in alarm.reproduce


@pytest.mark.parametrize("nights", [1, 2, 3])
def test_a_series_of_few_nights_raises_nothing(nights: int):
    assert lived(made(nights, {nights - 1: 3.0})) == []


def test_what_vanishes_and_what_appears_is_listed_once():
    both = history(4, 2, ["2.0.0", "2.13.0"])
    gone = [point for point in both if point.version != "2.13.0" or point.night < day(2)]
    assert judged(gone, [], day(2)).vanished == tuple(f"{case} in 2.13.0" for case in sorted(labels(2)))
    assert judged(gone, [], day(3)).vanished == ()
    new = [point for point in both if point.version != "2.13.0" or point.night >= day(2)]
    assert judged(new, [], day(2)).appeared == tuple(f"{case} in 2.13.0" for case in sorted(labels(2)))
    assert judged(new, [], day(0)).appeared == ()


def test_what_another_schedule_or_host_measured_has_not_vanished():
    """A schedule of the same suite with a version more, and one of another suite, measured a little later."""
    narrow, elsewhere = history(3, 2, ["2.0.0"]), history(3, 3, host="elsewhere")

    def later(points: list[Point], name: str, **fields: str) -> list[Point]:
        hour = timedelta(hours=1)
        return [replace(point, run=f"{point.run}-{name}", started=point.started + hour, **fields) for point in points]

    wide = later(history(3, 2, ["2.0.0", "2.13.0"]), "wide")
    other = later(history(3, 1), "other", suite="full", case="other")
    points = [*narrow, *elsewhere, *wide, *other]
    for tonight in (narrow, wide, other):
        own = {point.key for point in tonight}
        runs = {point.run for point in tonight}
        found = judge(series_of(points), (), day(2), at(day(2)), own, RUNS, runs)
        assert (found.vanished, found.appeared) == ((), ())


def test_a_version_that_died_is_listed_with_its_reason_and_is_no_alarm():
    points = history(6, 3)
    points = [
        replace(point, outcome="died", reason="import: no module", effect=None, error=None, rounds=0)
        if point.version == "2.13.0" and point.night >= day(5)
        else point
        for point in points
    ]
    found = judged(points, [], day(5))
    assert found.events == ()
    assert found.warnings == ("2.13.0 died in 3 cases: import: no module",)
    assert found.vanished == ()


def test_what_is_listed_of_a_night_is_what_its_events_were():
    points = made(STEP + 1, {STEP: 1.2})
    found = judged(points, [], day(STEP))
    night = night_of(day(STEP))
    old = replace(opened(list(found.events))[0], id="other", state="known", note="seen")
    everything = (*state.current(found.events), old, replace(old, id="gone", state="recovered"))
    told = report_events(NightReport(night=night), found, everything, day(STEP))
    assert [alarm.id for alarm in told.opened] == [opened(list(found.events))[0].id]
    assert [alarm.id for alarm in told.still] == ["other"]
    assert told.recovered == ()
    assert told.happened
    assert not report_events(NightReport(night=night), replace(found, events=()), (), day(STEP)).happened


def test_a_freak_night_is_over_when_the_next_ones_say_so():
    points = made(STEP + 8, {STEP: 1.3, STEP + 1: 1 / 1.3})
    events = lived(points, first=STEP - 2)
    states = [event.state for event in events if isinstance(event, Moved)]
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
        [(LANDS, "faster"), (LANDS + 1, "confirmed"), (40, "recovered"), (70, "slower"), (71, "confirmed")],
        id="smaller than an improvement that ended long ago",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "expected"), REPEATED_STEPS)
def test_a_step_after_an_alarm_of_the_same_series_is_an_alarm_of_its_own(
    steps: dict[int, float], expected: list[tuple[int, str]]
):
    events = lived(steady(max(steps) + 8, steps), first=LANDS - 2)
    assert [_what(event) for event in events] == expected


def steady(nights: int, steps: dict[int, float]) -> list[Point]:
    """Return points whose noise is small beside every step, so that each is found on its first night."""
    points = history(nights, 1, ("2.0.0",), steps={(CASE, "2.0.0"): steps}, noise=0.008)
    return [replace(point, rounds=72 if point.version == "2.0.0" else 12) for point in points]


def _what(event: Event) -> tuple[int, str]:
    if isinstance(event, AlarmOpened):
        return (event.at.date() - FIRST).days, event.alarm.change.direction
    assert isinstance(event, Moved)
    return (event.at.date() - FIRST).days, event.state


def test_two_steps_that_are_reverted_together_both_recover():
    events = lived(steady(50, {LANDS: 1.1, LANDS + 4: 1.1, 44: 1 / 1.21}), first=LANDS - 2)
    assert [alarm.change.direction for alarm in opened(events)] == ["slower", "slower"]
    assert [alarm.state for alarm in state.current(events)] == ["recovered", "recovered"]


def test_a_recovered_alarm_whose_step_is_still_there_is_raised_again():
    points = steady(LANDS + 2, {LANDS: 1.1})
    tonight = day(LANDS + 1)
    [alarm] = opened(lived([point for point in points if point.night <= day(LANDS)], first=LANDS))
    closed = [
        AlarmOpened(at=alarm.opened, alarm=alarm),
        Moved(at=at(tonight), alarm=alarm.id, state="recovered", night=tonight),
    ]
    found = judged(points, closed, tonight)
    assert [(event.alarm, event.state) for event in found.events if isinstance(event, Moved)] == [(alarm.id, "new")]
    night = Night(
        at=at(tonight), night=tonight, started=at(tonight), host="host", suite="made", versions=("2.0.0",), run="r",
        outcome="measured", said=(), cells=1, screened=1, confirmed=1, exit_code=0,
    )  # fmt: skip
    told = report_events(NightReport(night=night), found, state.current([*closed, *found.events]), tonight)
    assert [one.id for one in told.opened] == [alarm.id]
    assert told.still == ()


def test_a_step_of_another_size_is_not_the_one_that_is_known():
    points = steady(LANDS + 8, {LANDS: 1.05, LANDS + 1: 1.2})
    found = opened(lived(points, first=LANDS))
    assert len(found) == 2
    assert math.isclose(found[1].change.ratio, 1.05 * 1.2, rel_tol=0.05)
    assert found[0].id != found[1].id


def test_an_alarm_is_dated_by_its_night_and_not_by_the_clock():
    points = steady(LANDS + 2, {LANDS: 1.1})
    own = {point.key for point in points}
    late = at(day(LANDS + 1))
    so_far = [point for point in points if point.night <= day(LANDS)]
    events = judge(series_of(so_far), (), day(LANDS), late, own, RUNS).events
    assert opened(list(events))[0].raised == day(LANDS)
    assert [event.state for event in judged(points, list(events), day(LANDS + 1)).events] == ["confirmed"]
