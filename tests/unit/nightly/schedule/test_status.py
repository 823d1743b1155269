"""How it stands with the nights: what went well says so, and what did not is not silent."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from orchestrator.history.model import Night
from orchestrator.nightly.due import ON_TIME
from orchestrator.nightly.lock import Holder
from orchestrator.nightly.schedule.status import describe_status, find_status
from tests.support.schedules import PLANNED

NOW = datetime(2026, 11, 4, 12).astimezone()
BEGAN = datetime(2026, 11, 4, 2, 30).astimezone()
NIGHT = Night(
    at=BEGAN + timedelta(hours=1, minutes=5),
    night=date(2026, 11, 4),
    started=BEGAN,
    host=PLANNED.host,
    suite="studies",
    targets=("2.13", "nightly"),
    run="20261104-023000-abcd",
    outcome="measured",
    said=(),
    cells=40,
    screened=40,
    confirmed=2,
    exit_code=0,
    device="cpu",
    engine="auto",
    selected=(),
    flags=(),
)
RUNNING = Holder(7, BEGAN, "")


def found(*events: Night, running: Holder | None = None, now: datetime = NOW, **planned: Any):
    return find_status(replace(PLANNED, **planned), "cron of somebody", events, running, now)


def test_a_night_that_was_measured_is_told_with_its_result_and_the_next():
    told = "\n".join(describe_status(found(NIGHT), NOW))
    assert found(NIGHT).wrong == ()
    for words in (
        "every night at 02:30, by cron of somebody; a missed run is started later",
        "tfcompare nightly run --versions 2.13,nightly --suite studies",
        "next: 2026-11-05 02:30 ",
        "(in 14 h 30 min)",
        "last: 2026-11-04 measured, 40 comparisons, exit code 0, after 1 h 5 min, run 20261104-023000-abcd",
        "now: no nightly run is in progress",
    ):
        assert words in told


def test_a_night_that_runs_is_told_with_its_beginning():
    one = found(running=RUNNING)
    assert "now: a nightly run has been in progress since 2026-11-04 02:30 (pid 7)" in describe_status(one, NOW)
    assert one.wrong == ()


@pytest.mark.parametrize(
    ("outcome", "words"), [("failed", "failed: no engine"), ("hung", "hung and was ended: no engine")]
)
def test_a_night_that_failed_or_hung_is_wrong(outcome: Any, words: str):
    one = found(replace(NIGHT, outcome=outcome, said=("no engine",)))
    assert one.wrong == (f"the nightly run of 2026-11-04 {words}",)
    assert f"problem: {one.wrong[0]}" in describe_status(one, NOW)


def test_a_night_that_left_nothing_is_wrong_once_it_had_its_time():
    last = replace(NIGHT, night=date(2026, 11, 3), started=BEGAN - timedelta(days=1), at=BEGAN - timedelta(hours=20))
    assert found(last).wrong == ("the nightly run of 2026-11-04 left no result",)
    assert found().wrong == ("the nightly run of 2026-11-04 left no result",)
    assert found(last, now=BEGAN + ON_TIME - timedelta(seconds=1)).wrong == ()


def test_nothing_is_wrong_before_the_first_night():
    assert found(since=NOW - timedelta(minutes=1)).wrong == ()


def test_nights_of_other_machines_are_not_ours():
    other = replace(NIGHT, host="another", at=NOW)
    assert found(NIGHT, other).last == NIGHT


def test_a_night_that_this_machine_had_measured_in_a_fleet_is_ours():
    elsewhere = replace(NIGHT, host="of-a-fleet")
    assert found(elsewhere).wrong == ("the nightly run of 2026-11-04 left no result",)
    assert found(replace(elsewhere, starter=PLANNED.host)).wrong == ()
    assert found(replace(NIGHT, starter="another")).last is None


def test_a_night_on_another_device_is_of_another_schedule():
    assert found(replace(NIGHT, device="cpu")).last is not None
    assert found(replace(NIGHT, device="gpu")).wrong == ("the nightly run of 2026-11-04 left no result",)
    assert found(replace(NIGHT, device="gpu"), device="gpu").wrong == ()
    assert found(replace(NIGHT, device="cpu"), device="gpu").last is None


def test_a_night_caught_up_in_the_morning_counts_for_the_one_that_was_due():
    late = replace(NIGHT, night=date(2026, 11, 5), started=datetime(2026, 11, 5, 1).astimezone())
    assert found(late, now=datetime(2026, 11, 5, 1, 30).astimezone()).wrong == ()


def test_logins_among_the_flags_are_not_told():
    told = describe_status(found(flags=("--notify", "mailto://me:secret@example.org")), NOW)
    assert "secret" not in "\n".join(told)


def test_as_an_object_it_has_the_same():
    told = found(NIGHT, running=RUNNING).as_object()
    assert (told["at"], told["missed"], told["by"], told["wrong"]) == ("02:30", "catch-up", "cron of somebody", [])
    assert told["last"] == {
        "night": "2026-11-04", "outcome": "measured", "exit_code": 0, "run": NIGHT.run, "ended": NIGHT.at.isoformat()
    }  # fmt: skip
    assert told["running"] == {"pid": 7, "since": BEGAN.isoformat()}
    assert found().as_object()["last"] is None


def test_a_night_that_ended_in_the_future_is_not_the_last():
    """The clock was ahead for a while."""
    ahead = replace(NIGHT, at=NOW + timedelta(days=1000), night=date(2029, 1, 1))
    assert found(NIGHT, ahead).last == NIGHT
