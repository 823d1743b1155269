"""What a machine does to all series at once is one notice; what TensorFlow does on the same night is an alarm."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from orchestrator.history.alarms import state
from orchestrator.history.alarms.judge import report_events
from orchestrator.history.alarms.machine import machine_change_at
from orchestrator.history.model import Alarm, NightReport, Point
from tests.support.judged_nights import day, exit_codes, judged, lived, night_of, opened
from tests.support.nights import SURROUNDINGS, history, labels, series_of

REBOOT = 25
CASES = labels(10)
PINNED, NIGHTLY, CONTROL = "2.13.0", "nightly", "1.14.0+control"
# What a start of the machine may do to cases.
SHIFTS = (1.02, 1 / 1.02, 1.025, 1 / 1.015, 1.02, 1 / 1.025, 1.015, 1 / 1.02, 1.02, 1 / 1.02)


def start_once(number: int) -> str:
    return "2024-01-01 08:00 UTC a" if number < REBOOT else "2024-01-25 23:00 UTC b"


def start_nightly(number: int) -> str:
    return f"2024-01-01 08:00 UTC start-{number}"


def made(
    nightly: Sequence[float],
    others: Sequence[float] = (),
    other: str = PINNED,
    boot: Callable[[int], str] = start_once,
    **changes: str,
) -> list[Point]:
    """Nights of ten cases in `nightly`, another build every night, and of others; all are moved on one of them."""
    versions = (NIGHTLY, PINNED) if others and other == PINNED else (NIGHTLY,)
    moved = {(case, NIGHTLY): {REBOOT: size} for case, size in zip(CASES, nightly, strict=False)}
    moved |= {(case, other): {REBOOT: size} for case, size in zip(CASES, others, strict=False)}
    numbers = {day(number): number for number in range(REBOOT + 6)}
    points = history(len(numbers), 10, versions, steps=moved, noise=0.008)
    return [
        replace(
            point,
            build=f"2.22.0.dev{point.night:%Y%m%d}" if point.target == NIGHTLY else point.build,
            # As confirmed nights have.
            rounds=10 if point.target.endswith("+control") else 72,
            surroundings=replace(
                SURROUNDINGS,
                boot=boot(numbers[point.night]),
                **(changes if numbers[point.night] >= REBOOT else {}),
            ),
        )
        for point in points
    ]


def found(points: list[Point]) -> list[Alarm]:
    return [alarm for alarm in opened(lived(points, first=REBOOT - 1)) if str(alarm.key.target) == NIGHTLY]


def test_what_a_start_did_to_versions_that_nobody_changed_too_is_one_notice_and_known():
    points = made([1.025, 1.025], SHIFTS)
    events = lived(points, first=REBOOT - 1)
    alarms = opened(events)
    assert {alarm.state for alarm in alarms} == {"known"}
    assert {(alarm.key.case, str(alarm.key.target)) for alarm in alarms} >= {(case, NIGHTLY) for case in CASES[:2]}
    note = "began when the machine changed: boot: 2024-01-01 08:00 UTC -> 2024-01-25 23:00 UTC"
    assert {alarm.note for alarm in alarms} == {note}
    tonight = judged(points, [], day(REBOOT))
    [notice] = tonight.warnings
    assert f"series of host host {note}; suspect the machine before TensorFlow: " in notice
    assert f"{CASES[0]} in {NIGHTLY}" in notice
    after = state.current(tonight.events)
    report = report_events(NightReport(night=night_of(day(REBOOT))), tonight, after, day(REBOOT))
    assert (report.opened, report.still) == ((), after)
    assert exit_codes(events) == {}


def test_a_start_after_which_nothing_moved_is_no_news():
    assert opened(lived(made([], [1.0] * 10), first=REBOOT - 1)) == []


@pytest.mark.parametrize(
    ("nightly", "others"),
    [
        # Only the version that is another build moved; its own cases are no evidence.
        ([1.025] * 6, ()),
        ([1.025] * 6, [1.0] * 10),
        # More than a machine does.
        ([1.04] * 6, SHIFTS),
        ([1.5] * 3, SHIFTS),
        ([1.5] * 3, ()),
    ],
)
def test_what_begins_with_a_start_and_is_not_the_machines_is_an_alarm(
    nightly: Sequence[float], others: Sequence[float]
):
    alarms = found(made(nightly, others))
    assert {alarm.key.case for alarm in alarms} == set(CASES[: len(nightly)])
    assert {alarm.state for alarm in alarms} == {"new"}
    assert all(any(text.startswith("boot: ") for text in alarm.surroundings) for alarm in alarms)


@pytest.mark.parametrize("size", [1.025, 1.1, 1.5])
def test_where_every_night_has_a_start_of_its_own_none_of_them_explains_anything(size: float):
    alarms = found(made([size] * 6, SHIFTS, boot=start_nightly))
    assert len(alarms) == 6
    assert {alarm.state for alarm in alarms} == {"new"}


def test_another_kernel_explains_what_it_did_also_where_every_night_has_a_start_of_its_own():
    alarms = found(made([1.025] * 2, SHIFTS, boot=start_nightly, kernel="6.2"))
    assert {alarm.state for alarm in alarms} == {"known"}
    assert {alarm.note for alarm in alarms} == {"began when the machine changed: kernel: 6.1 -> 6.2"}


@pytest.mark.parametrize("moved", [True, False])
def test_the_control_tells_that_a_machine_moved_levels(moved: bool):
    # The control belongs to another case: half of what it strays by is subtracted from versions of that case.
    points = made([1.025] * 2, (1.0, 1.0, *SHIFTS[2:]) if moved else [1.0] * 10, other=CONTROL)
    assert {alarm.state for alarm in found(points)} == ({"known"} if moved else {"new"})


@pytest.mark.parametrize(("off", "near"), [(0, True), (3, True), (4, False)])
def test_a_step_may_seem_to_begin_some_nights_after_the_start(off: int, near: bool):
    series = next(series for key, series in series_of(made([1.025])).items() if key.target == NIGHTLY)
    alarm = found(made([1.025]))[0]
    of = machine_change_at(series, replace(alarm.change, first=day(REBOOT + off)))
    assert (of is not None) == near
    assert of is None or of.night == day(REBOOT)
