"""Histories of which sites are built, and names that attack their pages."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from orchestrator.history.model import Alarm, Change, Key, Point
from orchestrator.history.store import Store
from tests.support.nights import FIRST, REFERENCE, SURROUNDINGS, history

CASES = ["power[style=function]", "predict[call=predict]"]
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e\x1b[31m\n{{7*7}}"


def kept(folder: Path, points: list[Point]) -> Store:
    store = Store(folder)
    ordered = sorted(points, key=lambda point: (point.started, point.run, point.stage == "confirm"))
    for _, of_run in groupby(ordered, key=lambda point: (point.started, point.run, point.stage)):
        store.append(list(of_run))
    return store


def at(number: int, hour: int = 4) -> datetime:
    return datetime(2024, 1, 1, hour, tzinfo=UTC) + timedelta(days=number)


def alarm(case: str = CASES[0], id: str = "a1", number: int = 40, **more) -> Alarm:
    first = FIRST + timedelta(days=number)
    fields = {
        "id": id,
        "key": Key.parse(case, "2.13.0", REFERENCE, "cpu", "venv", "host"),
        "found_by": "night",
        "change": Change(
            first=first,
            last=first - timedelta(days=1),
            before=1,
            after=1.1,
            ratio=1.1,
            ci_low=1.08,
            ci_high=1.12,
            p=1e-6,
        ),
        "surroundings": ("kernel: 6.1 -> 6.6",),
        "run": "20240210-020000-0001",
        "reproduce": f"tfcompare run --case '{case}'",
        "bisect": f"tfcompare bisect --case '{case}'",
        "opened": at(number, 3),
        "night": first,
        "proven": False,
    }
    return Alarm(**{**fields, **more})


def changed(points: list[Point], since: int, **surroundings: str) -> list[Point]:
    begin = FIRST + timedelta(days=since)
    return [
        replace(one, surroundings=replace(one.surroundings, **surroundings)) if one.night >= begin else one
        for one in points
    ]


def everything() -> list[Point]:
    """Segments, two stages, a second host, a followed version, deaths, nights that are there twice."""
    points = changed(history(30, CASES, seed=3), 12, image="other", reference_image="new", driver="2")
    points = changed(points, 20, source="changed")
    again = [
        replace(one, stage="confirm", rounds=40, effect=(one.effect or 0) + 0.01)
        for one in points
        if one.night.day in (3, 17)
    ]
    twice = [
        replace(one, run="second", started=one.started + timedelta(hours=1)) for one in points if one.night.day == 9
    ]
    backwards = [
        replace(one, night=one.night - timedelta(days=4), run="back", started=one.started + timedelta(hours=2))
        for one in points
        if one.night.day == 15
    ]
    dead = [
        replace(one, effect=None, error=None, rounds=0, outcome="died", reason="killed")
        if one.night.day == 22 and one.target == "2.0.0"
        else replace(one, rounds=1)
        if one.night.day == 23 and one.target == "2.13.0"
        else one
        for one in points
    ]
    followed = [
        replace(one, build=f"2.22.0.dev{one.night:%Y%m%d}", surroundings=replace(SURROUNDINGS, image=str(one.night)))
        for one in history(9, CASES[:1], versions=("nightly",), control=False, host="other")
    ]
    found = [_by_worker(one) for one in (*dead, *again, *twice, *backwards, *followed)]
    return sorted(found, key=lambda one: (one.started, one.run, one.stage == "confirm"))


def _by_worker(point: Point) -> Point:
    """The first nights say nothing of their worker; later it becomes another."""
    worker = "" if point.night.day < 5 else "first" if point.night.day < 27 else "second"
    return replace(point, surroundings=replace(point.surroundings, worker=worker))
