"""What a night means for people: alarms that begin, hold, end; what came and went; what is told and raises none."""

import math
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.history.alarms import state
from orchestrator.history.alarms.judge import judge_night, report_events
from orchestrator.history.model import NightReport, Point, State, StateChanged
from orchestrator.history.wording import describe_alarm, describe_levels
from tests.support.judged_nights import CASE, RUNS, at, day, judged, lasting, lived, made, night_of, opened
from tests.support.nights import SURROUNDINGS, history, labels, series_of

STEP, LANDS = 20, 30


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
    assert [(event.state, event.night) for event in events if isinstance(event, StateChanged)] == [
        ("confirmed", day(STEP + 1))
    ]


def test_memory_is_an_alarm_in_its_own_words_and_says_nothing_of_times():
    times = made(30, {})
    memory = [replace(point, metric="memory") for point in made(30, {STEP: 1.15})]
    events = lived([*times, *memory], first=STEP - 2)
    [alarm] = opened(events)
    assert alarm.key.metric == "memory"
    assert alarm.key.id != replace(alarm.key, metric="time").id
    assert re.fullmatch(r"1\.1\dx more peak memory \(1\.1\d-1\.1\d\)", describe_alarm(alarm))
    assert alarm.reproduce.endswith("--metric memory")
    assert alarm.why.startswith("tfcompare why 1.14.0 2.0.0 ")
    assert alarm.why.endswith("--metric memory")


def test_cpu_time_is_an_alarm_in_its_own_words_and_says_nothing_of_wall_times():
    wall = made(30, {})
    cpu = [replace(point, judge="cpu") for point in made(30, {STEP: 1.15})]
    events = lived([*wall, *cpu], first=STEP - 2)
    [alarm] = opened(events)
    assert (alarm.key.metric, alarm.key.judge) == ("time", "cpu")
    assert alarm.key.id != replace(alarm.key, judge="wall").id
    assert re.fullmatch(r"1\.1\dx slower by CPU time \(1\.1\d-1\.1\d\)", describe_alarm(alarm))
    assert describe_levels(alarm).startswith("its CPU time per step was ")
    assert alarm.reproduce.endswith("--control --judge cpu")
    # The wall times of the same case took no step and hide none.
    assert lived([*(replace(point, judge="cpu") for point in wall), *made(30, {STEP: 1.15})], first=STEP - 2)


def test_nights_that_change_from_wall_to_cpu_time_raise_nothing():
    """CPU time may be a quarter of wall time in one version and half in another."""
    points = [replace(point, judge="cpu") if point.night >= day(STEP) else point for point in made(40, {STEP: 2.0})]
    assert lived(points) == []


def test_a_metric_that_is_new_makes_no_case_new():
    times = made(12, {})
    memory = [replace(point, metric="memory") for point in times if point.night >= day(6)]
    found = judged([*times, *memory], [], day(6))
    assert (found.appeared, found.vanished) == ((), ())
    assert judged([*times, *memory[:-2]], [], day(11)).vanished == ()


@pytest.mark.parametrize("said", ["known", "muted", None])
@pytest.mark.parametrize("later", [0, 2, 10])
def test_what_is_known_of_times_hides_nothing_of_first_calls(said: State | None, later: int):
    times = made(36, {STEP: 1.1})
    first = [replace(point, metric="first") for point in made(36, {STEP + later: 3.0})]
    says = {STEP + later - 1: said} if said and later else {}
    alarms = opened(lived(sorted([*times, *first], key=lambda point: point.started), first=STEP - 1, says=says))
    assert sorted((alarm.key.metric, alarm.night) for alarm in alarms) == [
        ("first", day(STEP + later)),
        ("time", day(STEP)),
    ]


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


def test_a_muted_alarm_is_neither_opened_again_nor_told():
    points = made(30, {STEP: 1.2})
    events = lived(points[: len(points) // 30 * (STEP + 2)], first=STEP - 2)
    [alarm] = opened(events)
    later = at(day(STEP + 1)) + timedelta(hours=3)
    events.append(StateChanged(at=later, alarm=alarm.id, state="muted", note="the new driver"))
    for number in range(STEP + 2, 30):
        assert judged(points, events, day(number)).events == ()
    [muted] = state.current(events)
    assert (muted.state, muted.note) == ("muted", "the new driver")
    assert state.is_open_alarm(muted)
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
    assert alarm.why == f"tfcompare why 1.14.0 2.0.0 --case '{CASE}' --engine venv"
    assert alarm.run == after


def test_of_a_nightly_tensorflow_the_days_between_are_searched():
    points = [
        replace(point, build=f"2.23.0.dev{point.night:%Y%m%d}") if point.target == "nightly" else point
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
    gone = [point for point in both if point.target != "2.13.0" or point.night < day(2)]
    assert judged(gone, [], day(2)).vanished == tuple(f"{case} in 2.13.0" for case in sorted(labels(2)))
    assert judged(gone, [], day(3)).vanished == ()
    new = [point for point in both if point.target != "2.13.0" or point.night >= day(2)]
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
        found = judge_night(series_of(points), (), day(2), at(day(2)), own, RUNS, runs)
        assert (found.vanished, found.appeared) == ((), ())


def test_a_version_that_died_is_listed_with_its_reason_and_is_no_alarm():
    points = history(6, 3)
    points = [
        replace(point, outcome="died", reason="import: no module", effect=None, error=None, rounds=0)
        if point.target == "2.13.0" and point.night >= day(5)
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


def test_an_alarm_is_dated_by_its_night_and_not_by_the_clock():
    points = lasting(LANDS + 2, {LANDS: 1.1})
    own = {point.key for point in points}
    late = at(day(LANDS + 1))
    so_far = [point for point in points if point.night <= day(LANDS)]
    events = judge_night(series_of(so_far), (), day(LANDS), late, own, RUNS).events
    assert opened(list(events))[0].night == day(LANDS)
    assert [event.state for event in judged(points, list(events), day(LANDS + 1)).events] == ["confirmed"]
