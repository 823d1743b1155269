"""Which night has to begin: once each, whatever clocks do, and whoever asks."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import UsageError
from orchestrator.nightly import lock
from orchestrator.nightly.due import (
    INTERVAL,
    ON_TIME,
    DueNights,
    NightRecord,
    age,
    decide,
    find_night,
    next_after,
    time_of_day,
)

AT = clock_time(2, 30)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where the clock is set forward on the last Sunday of March and back on that of October."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "found"), [("02:00", (2, 0)), ("2:05", (2, 5)), (" 23:59 ", (23, 59)), ("00:00", (0, 0))]
)
def test_a_time_of_day_is_hours_and_minutes(text: str, found: tuple[int, int]) -> None:
    at = time_of_day(text)
    assert (at.hour, at.minute) == found


@pytest.mark.parametrize("text", ["25:00", "24:00", "02:60", "2", "02:00:00", "2am", "", "-1:00", "٠٢:٠٠"])
def test_what_is_no_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--at .*: a time of day, e\.g\. 02:00"):
        time_of_day(text)


def test_the_night_that_is_due_is_the_one_whose_time_came_last() -> None:
    at = time_of_day("02:00")
    assert find_night(datetime(2026, 11, 3, 1, 59), at) == date(2026, 11, 2)
    assert find_night(datetime(2026, 11, 3, 2, 0), at) == date(2026, 11, 3)
    assert find_night(datetime(2026, 11, 3, 23, 0), at) == date(2026, 11, 3)
    assert find_night(datetime(2027, 1, 1, 0, 30), at) == date(2026, 12, 31)


def test_an_hour_that_the_clock_leaves_out_comes_as_the_one_after_it(berlin: None) -> None:
    assert next_after(datetime(2026, 3, 28, 12), AT).isoformat() == "2026-03-29T03:30:00+02:00"
    assert next_after(datetime(2026, 3, 29, 3, 30), AT).isoformat() == "2026-03-30T02:30:00+02:00"
    # Whoever asks at the first moment after it is not late.
    before = NightRecord(date(2026, 3, 28), date(2026, 3, 28))
    assert decide(before, datetime(2026, 3, 29, 3, 0), AT, "skip")[1] == "begin"


def test_an_hour_that_comes_twice_has_one_night(berlin: None) -> None:
    began = next_after(datetime(2026, 10, 24, 12), AT)
    assert began.isoformat() == "2026-10-25T02:30:00+02:00"
    nights = {
        find_night((began + timedelta(minutes=step)).astimezone().replace(tzinfo=None), AT) for step in range(180)
    }
    # Between 02:00 and 02:30 of the second pass the clock is before the time again.
    assert nights == {date(2026, 10, 24), date(2026, 10, 25)}
    assert next_after(datetime(2026, 10, 25, 3), AT).isoformat() == "2026-10-26T02:30:00+01:00"


ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Asia/Kolkata", "Asia/Kathmandu", "Africa/Cairo",
    "Australia/Lord_Howe", "Pacific/Chatham",
)  # fmt: skip
# Before a week in which clocks change, in one zone or another.
BEGINS = (
    "2026-03-05",
    "2026-03-26",
    "2026-04-01",
    "2026-04-22",
    "2026-06-10",
    "2026-10-01",
    "2026-10-22",
    "2026-10-29",
)


@dataclass
class Machine:
    """A machine with a clock and a scheduler that asks every 15 minutes while the machine is on."""

    zone: ZoneInfo
    at: clock_time
    missed: str
    # The true time, and how far the clock is ahead of it.
    true: datetime
    ahead: timedelta = timedelta(0)
    marked: NightRecord | None = None
    begun: list[tuple[date, datetime]] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        return (self.true + self.ahead).astimezone(self.zone)

    def run(self, minutes: int) -> None:
        for _ in range(minutes):
            if self.now.minute % 15 == self.at.minute % 15:
                self.ask()
            self.true += timedelta(minutes=1)

    def ask(self) -> None:
        self.marked, step = decide(self.marked, self.now, self.at, self.missed)
        if step == "begin":
            night = find_night(self.now, self.at)
            self.begun.append((night, self.now))
            self.marked = NightRecord(night, night)


times = st.builds(clock_time, st.integers(0, 23), st.integers(0, 59))
machines = st.builds(
    lambda zone, at, missed, begins: Machine(
        ZoneInfo(zone), at, missed, datetime.fromisoformat(begins).replace(hour=12, tzinfo=UTC)
    ),
    st.sampled_from(ZONES),
    times,
    st.sampled_from(("catch-up", "skip")),
    st.sampled_from(BEGINS),
)


@given(machines)
@settings(max_examples=60, deadline=None)
def test_a_machine_that_is_always_on_begins_every_night_at_its_time(machine: Machine) -> None:
    machine.run(8 * 24 * 60)
    nights = [night for night, _ in machine.begun]
    assert nights == [nights[0] + timedelta(days=days) for days in range(len(nights))]
    # A change of clocks can let one more into eight days.
    assert len(nights) in (7, 8, 9)
    for night, now in machine.begun:
        late = age(night, now, machine.at)
        # In an hour that the clock skips, its first quarter stands for the time.
        assert late == timedelta(0) or timedelta(hours=-1) <= late < INTERVAL
        assert late == timedelta(0) or now.utcoffset() != (now - timedelta(days=1)).utcoffset()


@given(machines, st.lists(st.tuples(st.integers(1, 4000), st.integers(1, 6000)), max_size=6))
@settings(max_examples=60, deadline=None)
def test_a_machine_that_was_off_catches_up_one_night_or_leaves_it_out(
    machine: Machine, spells: list[tuple[int, int]]
) -> None:
    machine.run(60)
    for off, on in spells:
        machine.true += timedelta(minutes=off)
        before = len(machine.begun)
        machine.run(on)
        if on >= 15 and machine.missed == "catch-up":
            assert machine.marked is not None
            assert age(machine.marked.night, machine.now, machine.at) < timedelta(days=1, hours=2, minutes=15)
            # Several that were missed are caught up by one.
            assert len(machine.begun) - before <= on / (23 * 60) + 2
    assert max(Counter(night for night, _ in machine.begun).values(), default=1) == 1
    assert machine.begun == sorted(machine.begun)
    if machine.missed == "skip":
        assert all(age(night, now, machine.at) <= ON_TIME for night, now in machine.begun)


jumps = st.one_of(st.integers(-180, 180), st.integers(-3, 3).map(lambda days: days * 1440), st.just(5 * 365 * 1440))


@given(machines, st.lists(st.tuples(jumps, st.integers(1, 3000)), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_nights_go_on_once_a_clock_is_right_again(machine: Machine, spells: list[tuple[int, int]]) -> None:
    machine.run(24 * 60)
    for ahead, minutes in spells:
        machine.ahead = timedelta(minutes=ahead)
        machine.run(minutes)
    machine.ahead = timedelta(0)
    machine.run(3 * 24 * 60)
    machine.begun.clear()
    machine.run(2 * 24 * 60)
    last = [night for night, _ in machine.begun]
    assert len(last) in (1, 2, 3)
    assert last == [last[0] + timedelta(days=days) for days in range(len(last))]


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DueNights:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    nights = DueNights("abc", AT, "catch-up")
    nights.wait_for_next(datetime(2026, 11, 3, 12))
    return nights


NIGHT, NOW = date(2026, 11, 4), datetime(2026, 11, 4, 2, 30)


def test_a_night_is_claimed_once(nights: DueNights) -> None:
    assert nights.claim(NOW - timedelta(minutes=1)) is None
    assert nights.claim(NOW) == NIGHT
    assert nights.claim(NOW + INTERVAL) is None
    assert nights.claim(NOW + timedelta(days=1)) == NIGHT + timedelta(days=1)


def test_of_many_that_ask_at_once_one_begins(nights: DueNights) -> None:
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(lambda _: nights.claim(NOW), range(8)))
    assert sorted(claimed, key=str)[:2] == [NIGHT, None]
    assert claimed.count(NIGHT) == 1


@pytest.mark.parametrize("missed", ["catch-up", "skip"])
def test_a_night_waits_for_another_one_and_is_not_missed_by_that(nights: DueNights, missed: str) -> None:
    nights = DueNights("abc", AT, missed)
    with lock.hold():
        assert nights.claim(NOW) is None
        assert nights.claim(NOW + timedelta(hours=2)) is None
    assert nights.claim(NOW + timedelta(hours=3)) == NIGHT


def test_another_question_has_nights_of_its_own(nights: DueNights) -> None:
    other = DueNights("def", AT, "catch-up")
    other.wait_for_next(datetime(2026, 11, 3, 12))
    assert nights.claim(NOW) == NIGHT
    assert other.claim(NOW) == NIGHT


def test_who_asks_for_the_first_time_waits_for_the_next_night(nights: DueNights) -> None:
    nights.forget()
    assert nights.claim(NOW) is None
    assert nights.claim(NOW + timedelta(days=1)) == NIGHT + timedelta(days=1)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"night": 7, "asked": 7}', '{"night": "2026-13-01"}', "\xff"])
def test_a_file_that_cannot_be_read_is_as_none(nights: DueNights, tmp_path: Path, text: str) -> None:
    [path] = (tmp_path / "data").rglob("nights-abc-*.json")
    assert json.loads(path.read_text()) == {"night": "2026-11-03", "asked": "2026-11-03"}
    path.write_text(text)
    assert nights.claim(NOW) is None
    assert nights.claim(NOW + timedelta(days=1)) == NIGHT + timedelta(days=1)


def test_a_full_disk_costs_no_night_and_begins_none_twice(nights: DueNights, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object) -> None:
        raise UsageError("cannot write it: No space left on device")

    monkeypatch.setattr("orchestrator.catalog.user_data.write_user_file", fail)
    assert nights.claim(NOW) == NIGHT
    with pytest.raises(UsageError, match="No space left"):
        nights.claim(NOW + INTERVAL)
    assert os.listdir(Path(os.environ["TFCOMPARE_DATA"]) / "tfcompare")
