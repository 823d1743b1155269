"""Series that change more than once: which events the nights record, by the functions that judge real nights."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from math import log, sqrt
from pathlib import Path

import numpy as np

from bench.figures import Section
from bench.nights import BEGIN, SCREEN
from orchestrator.history.alarms import state
from orchestrator.history.alarms import steps as detect
from orchestrator.history.alarms.judge import judge
from orchestrator.history.model import AlarmOpened, Event, Moved, Point, Surroundings
from orchestrator.history.schema import to_table
from orchestrator.history.series import all_series

SEED = 7
# Standard deviation of a night's value, and of one round of it.
NIGHT, ROUND = 0.003, 0.02
# Nights that follow the last step.
AFTER = 15
NOWHERE = Surroundings(
    image="", reference_image="", source="", driver="", kernel="", python="", machine="", tool=""
)  # fmt: skip
# By title, the factor that each night brings.
SERIES: Mapping[str, Mapping[int, float]] = {
    "+10 %, reverted, +10 % again within a week": {30: 1.1, 32: 1 / 1.1, 35: 1.1},
    "+10 %, reverted, +30 % within a week": {30: 1.1, 32: 1 / 1.1, 35: 1.3},
    "+10 %, and +10 % more four nights later": {30: 1.1, 34: 1.1},
    "+10 %, reverted, +10 % again after two weeks": {30: 1.1, 32: 1 / 1.1, 45: 1.1},
    "-10 % for ten nights, much later +4.5 %": {30: 0.9, 40: 1 / 0.9, 100: 1.045},
}


def section() -> Section:
    rows = [f"| {title} | {'; '.join(map(_described, events_of(steps)))} |" for title, steps in SERIES.items()]
    body = "\n".join(
        [
            f"{len(SERIES)} chosen examples, not a rate. Each series has a noise of {NIGHT:.1%} from night to night.",
            f"Nights at a step are confirmed by {sum(detect.CONFIRM_TIMES) * SCREEN} rounds, and counted from 0.",
            "",
            "| series | events |",
            "|---|---|",
            *rows,
        ]
    )
    return Section(body, [])


def events_of(steps: Mapping[int, float]) -> list[Event]:
    """Judge a series night after night and return the recorded events."""
    rng = np.random.default_rng(SEED)
    points: list[Point] = []
    events: list[Event] = []
    level = 0.0
    for number in range(max(steps) + AFTER):
        level += log(steps.get(number, 1.0))
        confirmed = number in steps or number - 1 in steps
        rounds = SCREEN * (sum(detect.CONFIRM_TIMES) if confirmed else 1)
        night = BEGIN + timedelta(days=number)
        points.append(_point(night, level + float(rng.normal(0, NIGHT)), rounds))
        series, known = all_series(to_table(points)), state.current(events)
        now = datetime.combine(night, time(6), UTC)
        events += judge(series, known, night, now, {points[-1].key}, Path("runs")).events
    return events


def _point(night: date, effect: float, rounds: int) -> Point:
    return Point(
        night=night, started=datetime.combine(night, time(2), UTC), run=f"{night:%Y%m%d}", stage="screen",
        suite="made", host="host", engine="venv", device="cpu", reference="2.13.0", version="nightly",
        build=f"2.22.0.dev{night:%Y%m%d}", case="case", outcome="measured", reason="", effect=effect,
        error=ROUND / sqrt(rounds), rounds=rounds, verdict="inconclusive", reference_ms=1.0, version_ms=1.0,
        surroundings=NOWHERE,
    )  # fmt: skip


def _described(event: Event) -> str:
    night = (event.at.date() - BEGIN).days
    if isinstance(event, AlarmOpened):
        return f"night {night}: alarm, {event.alarm.change.ratio:.2f}x {event.alarm.change.direction}"
    assert isinstance(event, Moved)
    return f"night {night}: {event.state}"
