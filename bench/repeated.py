"""Series of which the truth is known: which events the nights record, by the functions that judge real nights.

They change more than once, or together with the machine, the driver or the reference, or after a user said something of
an alarm. False is every alarm without a change, provisional and known ones included; missed is every change that has no
alarm, or is called known where it is news.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from math import log, sqrt
from pathlib import Path

import numpy as np

from bench.figures import Figure, Section
from bench.nights import BEGIN, SCREEN
from orchestrator.history.alarms import state
from orchestrator.history.alarms import steps as detect
from orchestrator.history.alarms.judge import judge_night
from orchestrator.history.model import (
    AlarmOpened,
    CauseFound,
    Event,
    Key,
    Night,
    Point,
    State,
    StateChanged,
    Surroundings,
)
from orchestrator.history.schema import to_table
from orchestrator.history.series import all_series
from orchestrator.metrics.followed import RESULTS, TIME, Followed

SEED = 7
# Standard deviation of a night's value, and of one round of it.
NIGHT, ROUND = 0.003, 0.02
# Nights that follow the last step, and those before the first that is judged.
AFTER, BEFORE = 15, 12
# A change counts as found if it is reported within this many nights.
SOON = 3
NOWHERE = Surroundings(
    image="", reference_image="", source="", driver="", kernel="", python="", machine="", tool="", worker="",
    variables="", reference_variables="", boot="", microcode="", governor="",
)  # fmt: skip
NIGHTLY, PINNED = "nightly", "2.16.2"
# What a start of the machine does to cases.
STARTED = (1.02, 1 / 1.02, 1.025, 1 / 1.015, 1.02, 1 / 1.025, 1.015, 1 / 1.02, 1.02, 1 / 1.02)
# By night, what happens there: the factor that it brings, or the share by which results differ from then on.
Steps = Mapping[int, float]
# The night of a start, and the factors that it brings to the cases of a pinned version.
Start = tuple[int, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Story:
    """Nights of `moved` of some cases, and the events that they should have; `cut` is the night of another driver."""

    steps: Steps = field(default_factory=dict)
    expected: Mapping[int, tuple[str, ...]]
    first: Steps = field(default_factory=dict)
    shares: Steps = field(default_factory=dict)
    moved: int = 1
    cases: int = 1
    start: Start | None = None
    nightly_starts: bool = False
    cut: int = 0
    says: Mapping[int, State] = field(default_factory=dict)

    @property
    def nights(self) -> int:
        return max((*self.steps, *self.first, *self.shares, self.cut)) + AFTER


SLOWER, FASTER, RECOVERED, RESIZED, KNOWN = ("slower",), ("faster",), ("recovered",), ("resized",), ("known",)
BACK = ("recovered", "slower")
STORIES: Mapping[str, Story] = {
    "+10 %, reverted, +10 % again within a week": Story(
        steps={30: 1.1, 32: 1 / 1.1, 35: 1.1}, expected={30: SLOWER, 32: RECOVERED, 35: SLOWER}
    ),
    "+10 %, reverted, +30 % within a week": Story(
        steps={30: 1.1, 32: 1 / 1.1, 35: 1.3}, expected={30: SLOWER, 32: RECOVERED, 35: SLOWER}
    ),
    "+10 %, and +10 % more four nights later": Story(steps={30: 1.1, 34: 1.1}, expected={30: SLOWER, 34: SLOWER}),
    "+10 %, reverted, +10 % again after two weeks": Story(
        steps={30: 1.1, 32: 1 / 1.1, 45: 1.1}, expected={30: SLOWER, 32: RECOVERED, 45: SLOWER}
    ),
    "-10 % for ten nights, much later +4.5 %": Story(
        steps={30: 0.9, 40: 1 / 0.9, 100: 1.045}, expected={30: FASTER, 40: BACK, 100: SLOWER}
    ),
    "+19 %": Story(steps={60: 1.19}, expected={60: SLOWER}),
    "1.00, 0.90, 1.00": Story(steps={30: 0.9, 70: 1 / 0.9}, expected={30: FASTER, 70: BACK}),
    "1.00, 0.90, 1.04": Story(steps={30: 0.9, 70: 1.04 / 0.9}, expected={30: FASTER, 70: BACK}),
    "1.00, 0.80, 0.90": Story(steps={30: 0.8, 70: 0.9 / 0.8}, expected={30: FASTER, 70: ("resized", "slower")}),
    "1.00, 0.50, 0.75": Story(steps={30: 0.5, 70: 1.5}, expected={30: FASTER, 70: ("resized", "slower")}),
    "0.80 for 200 nights, then +19 %": Story(
        steps={30: 0.8, 230: 1.19}, expected={30: FASTER, 230: ("resized", "slower")}
    ),
    "0.80, which a user calls known, then +19 %": Story(
        steps={30: 0.8, 70: 1.19}, expected={30: FASTER, 70: ("resized", "slower")}, says={40: "known"}
    ),
    "0.80, another driver on night 60, then +19 %": Story(
        steps={30: 0.8, 90: 1.19}, expected={30: FASTER, 60: ("apart",), 90: SLOWER}, cut=60
    ),
    "1.00, 4.00, 1.90": Story(steps={30: 4.0, 50: 1.9 / 4}, expected={30: SLOWER, 50: RESIZED}),
    "1.00, 1.50, 1.20, 1.00": Story(
        steps={30: 1.5, 50: 1.2 / 1.5, 60: 1 / 1.2}, expected={30: SLOWER, 50: RESIZED, 60: RECOVERED}
    ),
    "1.00, 1.10, 1.04": Story(steps={30: 1.1, 50: 1.04 / 1.1}, expected={30: SLOWER, 50: RESIZED}),
    "+10 %, and with another driver 8 % faster": Story(
        steps={30: 1.1, 40: 1 / 1.08}, expected={30: SLOWER, 40: ("apart",)}, cut=40
    ),
    "3 of 10 cases +50 % on the night of a start": Story(
        steps={30: 1.5}, moved=3, cases=10, start=(30, ()), expected={30: SLOWER}
    ),
    "the same, next to a pinned version that the start moved": Story(
        steps={30: 1.5}, moved=3, cases=10, start=(30, STARTED), expected={30: SLOWER}
    ),
    "3 of 10 cases +2.5 %, as a start did to a pinned version": Story(
        steps={30: 1.025}, moved=3, cases=10, start=(30, STARTED), expected={30: KNOWN}
    ),
    "6 of 10 cases +10 %, a start before each night": Story(
        steps={30: 1.1}, moved=6, cases=10, nightly_starts=True, expected={30: SLOWER}
    ),
    "10 of 10 cases +50 %, a start before each night": Story(
        steps={30: 1.5}, moved=10, cases=10, nightly_starts=True, expected={30: SLOWER}
    ),
    "+10 %, which a user mutes, then first calls x3": Story(
        steps={30: 1.1}, first={70: 3.0}, says={33: "muted"}, expected={30: SLOWER, 70: ("first slower",)}
    ),
    "first calls x3": Story(first={70: 3.0}, expected={70: ("first slower",)}),
    "results differ": Story(shares={30: 0.3}, expected={30: ("results",)}),
    "results differ from the night of another driver on": Story(
        shares={30: 0.3}, cut=30, expected={30: ("results",)}
    ),
    "results differ by 0.1 %, which a user calls known, then by 500 %": Story(
        shares={30: 0.001, 50: 5.0}, says={40: "known"}, expected={30: ("results",), 50: ("results",)}
    ),
    "results are equal, another driver": Story(shares={20: 0.0}, cut=30, expected={}),
}  # fmt: skip


def section() -> Section:
    rows, totals = [], Counter[str]()
    for title, story in STORIES.items():
        events = events_of(story)
        false, missed = count_errors(story, events)
        totals.update(false=false, missed=missed)
        rows.append(f"| {title} | {'; '.join(_describe_all(events))} | {false} | {missed} |")
    body = "\n".join(
        [
            f"Each series has a noise of {NIGHT:.1%} from night to night. Nights at a step are confirmed by",
            f"{sum(detect.CONFIRM_TIMES) * SCREEN} rounds. Nights are counted from 0. False is every alarm without a",
            "change, provisional and known ones included; missed is every change that has no alarm within",
            f"{SOON} nights, or one that is known where it is news. {len(STORIES)} chosen examples, not a rate.",
            "",
            "| series | events | false | missed |",
            "|---|---|---:|---:|",
            *rows,
        ]
    )
    return Section(body, [Figure(f"{name} alarms", totals[name], "count", limit=0) for name in ("false", "missed")])


def events_of(story: Story) -> list[tuple[int, Event, Key]]:
    """Judge the nights one after another; return their events, with the night and the series of each."""
    rng = np.random.default_rng(SEED)
    points: list[Point] = []
    events: list[Event] = []
    found: list[tuple[int, Event, Key]] = []
    for number in range(story.nights):
        tonight = list(_measure(story, number, rng))
        points += tonight
        if number < BEFORE:
            continue
        series, known = all_series(to_table(points)), state.current(events)
        night = BEGIN + timedelta(days=number)
        now = datetime.combine(night, time(6), UTC)
        fresh = judge_night(series, known, night, now, {point.key for point in tonight}, Path("runs")).events
        events += fresh
        keys = {alarm.id: alarm.key for alarm in state.current(events)}
        found += [(number, event, keys[_id_of(event)]) for event in fresh]
        if said := story.says.get(number):
            is_open = filter(state.is_open_alarm, state.current(events))
            events += [
                StateChanged(at=now + timedelta(hours=1), alarm=one.id, state=said, note="seen") for one in is_open
            ]
    return found


def _id_of(event: Event) -> str:
    assert not isinstance(event, Night | CauseFound)
    return event.alarm.id if isinstance(event, AlarmOpened) else event.alarm


def _measure(story: Story, number: int, rng: np.random.Generator) -> Iterator[Point]:
    around = replace(
        NOWHERE,
        driver="old" if number < story.cut else "new",
        boot=f"2026-01-01 08:00 UTC start-{number if story.nightly_starts else bool(_since(story.start, number))}",
    )
    is_step = {number, number - 1} & {*story.steps, *story.first, *([story.start[0]] if story.start else [])}
    rounds = SCREEN * (sum(detect.CONFIRM_TIMES) if is_step else 1)
    for place in range(story.cases):
        metrics: Mapping[Followed, Steps] = {TIME: story.steps, **({"first": story.first} if story.first else {})}
        for metric, steps in metrics.items():
            level = _level(steps, number) if place < story.moved else 0.0
            yield _point(number, place, NIGHTLY, level + float(rng.normal(0, NIGHT)), rounds, around, metric)
        if shifts := story.start[1] if story.start else ():
            level = log(shifts[place]) if _since(story.start, number) else 0.0
            yield _point(number, place, PINNED, level + float(rng.normal(0, NIGHT)), rounds, around, TIME)
        if story.shares:
            share = next((share for night, share in reversed(story.shares.items()) if night <= number), 0.0)
            point = _point(number, place, NIGHTLY, 0.0, 0, around, RESULTS)
            yield replace(point, effect=None, verdict="differs" if share else "equal", target_figure=share)


def _since(start: Start | None, number: int) -> bool:
    return start is not None and number >= start[0]


def _level(steps: Steps, number: int) -> float:
    return sum(log(factor) for night, factor in steps.items() if night <= number)


def _point(
    number: int, place: int, version: str, effect: float, rounds: int, around: Surroundings, metric: Followed
) -> Point:
    night = BEGIN + timedelta(days=number)
    return Point(
        night=night, started=datetime.combine(night, time(2), UTC), run=f"{night:%Y%m%d}", stage="screen",
        suite="made", host="host", engine="venv", device="cpu", reference="2.13.0", target=version,
        build=f"2.22.0.dev{night:%Y%m%d}" if version == NIGHTLY else version, case=f"case{place}",
        outcome="measured", reason="", effect=effect, error=ROUND / sqrt(max(rounds, 1)), rounds=rounds,
        verdict="inconclusive", metric=metric,
        reference_figure=1.0, target_figure=1.0, surroundings=around, commit="", judge="wall",
    )  # fmt: skip


def count_errors(story: Story, events: Sequence[tuple[int, Event, Key]]) -> tuple[int, int]:
    """Return how many alarms and ends of alarms have no cause, and how many changes have neither.

    What a start of the machine did to the pinned version may be known there, or may be too small for that.
    """
    expected = Counter(
        (what, night, f"case{place}")
        for night, several in story.expected.items()
        for what in several
        for place in range(story.moved)
    )
    false = 0
    for number, event, key in events:
        what = _name(event)
        if what == "confirmed" or (str(key.target) == PINNED and story.start and what == "known"):
            continue
        near = [one for one in +expected if (one[0], one[2]) == (what, key.case) and 0 <= number - one[1] < SOON]
        if near:
            expected[near[0]] -= 1
        else:
            false += 1
    return false, expected.total()


def _name(event: Event) -> str:
    if isinstance(event, StateChanged):
        return event.state
    if not isinstance(event, AlarmOpened):
        return "apart" if getattr(event, "apart", ()) else "resized"
    alarm = event.alarm
    if alarm.key.metric == RESULTS:
        return "results"
    way = "known" if alarm.state == "known" else alarm.change.direction
    return way if alarm.key.metric == TIME else f"{alarm.key.metric} {way}"


def _describe_all(events: Sequence[tuple[int, Event, Key]]) -> list[str]:
    counted = Counter((number, _describe(event, key)) for number, event, key in events)
    return [
        f"night {number}: {text}{f' ({count} cases)' if count > 1 else ''}" for (number, text), count in counted.items()
    ]


def _describe(event: Event, key: Key) -> str:
    if isinstance(event, StateChanged):
        return event.state
    if not isinstance(event, AlarmOpened):
        left = getattr(event, "left", None)
        return f"{left:.2f}x left" if left else "its surroundings changed"
    alarm = event.alarm
    if key.metric == RESULTS:
        return f"alarm, {alarm.said}"
    of = {TIME: "", "first": "first call "}.get(key.metric, "")
    back = f", {alarm.undoes.partition(' of 2')[0]}" if alarm.undoes else ""
    known = "known" if alarm.state == "known" else "alarm"
    # A start moves each case by another amount.
    size = "" if key.target == PINNED or alarm.state == "known" else f", {alarm.change.ratio:.2f}x {of}"
    return f"{known}{size}{alarm.change.direction if size else ''}{back}"
