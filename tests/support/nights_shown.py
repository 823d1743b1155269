"""A history in which there is something to see, for what draws it: a step with its alarm, borders, nights without a
time, a version that is followed, and one that left."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from orchestrator.history.alarms.steps import changes
from orchestrator.history.model import Alarm, AlarmOpened, Night, Point
from orchestrator.history.schema import to_table
from orchestrator.history.select import SeriesSelection, ShownPart, pick_series
from orchestrator.history.store import Store
from tests.support.nights import FIRST, history, series_of

EAGER = "train_loop[loop=fit,mode=eager,model=small]"
GRAPH = "train_loop[loop=fit,mode=graph,model=small]"
PREDICT = "predict[call=predict,model=tiny]"
BROKEN = "import: undefined symbol [red]_ZN3tsl[/red]"
STEP = 40
NIGHTS = 60
NIGHT = Night(
    at=datetime(2024, 2, 10, 4, tzinfo=UTC),
    night=date(2024, 2, 10),
    started=datetime(2024, 2, 10, 2, tzinfo=UTC),
    host="host",
    suite="made",
    targets=("2.13", "nightly"),
    run="20240210-020000-0002",
    outcome="measured",
    said=(),
    cells=6,
    screened=6,
    confirmed=1,
    exit_code=0,
    device="cpu",
    engine="auto",
    selected=(),
    flags=(),
)


def points() -> list[Point]:
    made = history(NIGHTS, (EAGER, GRAPH, PREDICT), ("2.13.0", "nightly"), 2, {(EAGER, "nightly"): {STEP: 1.12}})
    found = []
    for point in made:
        number = (point.night - FIRST).days
        around = point.surroundings
        if number >= 12:
            around = replace(around, kernel="6.2")
        if number >= 25:
            around = replace(around, reference_image="sha256:" + "b" * 64)
        if point.target == "nightly":
            around = replace(around, image=f"venv-{number}")
            point = replace(point, build=f"2.22.0.dev{point.night:%Y%m%d}")
        point = replace(point, surroundings=around)
        if point.target == "nightly" and number in (20, 55):
            point = replace(point, outcome="died", reason=BROKEN, effect=None, error=None, rounds=0)
        if point.case == PREDICT and number > 50:
            continue
        found.append(point)
        if (point.case, point.target, number) == (EAGER, "nightly", STEP):
            later = point.started + timedelta(hours=1)
            found.append(replace(point, stage="confirm", run=f"{point.run}c", started=later, rounds=40))
    return found


def alarm(of: list[Point]) -> Alarm:
    series = next(one for key, one in series_of(of).items() if (key.case, key.target) == (EAGER, "nightly"))
    (change,) = (change for segment in series.segments for change in changes(segment))
    return Alarm(
        id="0f9571",
        key=series.key,
        found_by="night",
        change=change,
        surroundings=("nightly: 2.22.0.dev20240209 -> 2.22.0.dev20240210",),
        run="20240210-020000-0002",
        reproduce=f"tfcompare run --versions 1.14.0,2.22.0.dev20240210 --case '{EAGER}' --engine venv --control",
        bisect=f"tfcompare bisect --good nightly-20240209 --bad nightly-20240210 --case '{EAGER}' --engine venv",
        opened=datetime(2024, 2, 10, 4, tzinfo=UTC),
        night=date(2024, 2, 10),
        proven=True,
    )


def picked(of: Iterable[Point], **asked: Any) -> ShownPart:
    in_order = sorted(of, key=lambda point: (point.started, point.run))
    return pick_series(to_table(in_order), SeriesSelection(**asked))


def kept_in(path: Path, of: Iterable[Point], *alarms: Alarm) -> Store:
    """As nights would have left it."""
    store = Store(path)
    in_order = sorted(of, key=lambda point: (point.started, point.run))
    for _, together in groupby(in_order, key=lambda point: (point.started, point.run)):
        store.append(list(together))
    for one in alarms:
        store.record(AlarmOpened(at=one.opened, alarm=one))
    return store
