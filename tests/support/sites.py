"""Histories of which sites are built, and names that attack their pages."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from orchestrator.history.model import Alarm, Change, Key, Point
from orchestrator.history.store import Store
from tests.support.nights import FIRST, REFERENCE

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
        "key": Key(case, "2.13.0", REFERENCE, "cpu", "venv", "host"),
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
        "reproduce": f"tfcompare run --workload '{case}'",
        "bisect": f"tfcompare bisect --workload '{case}'",
        "opened": at(number, 3),
    }
    return Alarm(**{**fields, **more})


def changed(points: list[Point], since: int, **surroundings: str) -> list[Point]:
    begin = FIRST + timedelta(days=since)
    return [
        replace(one, surroundings=replace(one.surroundings, **surroundings)) if one.night >= begin else one
        for one in points
    ]
