"""The layout of points in Parquet files: its columns, its version, and how older files are brought up to date."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa

from orchestrator.history.model import Point, Surroundings
from orchestrator.metrics.followed import TIME

LAYOUT = "tfcompare.history"
CURRENT = 7

TEXT = pa.string()
OF_SURROUNDINGS = tuple(field.name for field in fields(Surroundings))
SCHEMA = pa.schema(
    [
        pa.field("night", pa.date32(), nullable=False),
        pa.field("started", pa.timestamp("us", tz="UTC"), nullable=False),
        *(pa.field(name, TEXT, nullable=False) for name in ("run", "stage", "suite", "host", "engine", "device")),
        *(pa.field(name, TEXT, nullable=False) for name in ("reference", "version", "build", "case")),
        pa.field("outcome", TEXT, nullable=False),
        pa.field("reason", TEXT, nullable=False),
        pa.field("effect", pa.float64()),
        pa.field("error", pa.float64()),
        pa.field("rounds", pa.int32(), nullable=False),
        pa.field("verdict", TEXT, nullable=False),
        pa.field("reference_ms", pa.float64()),
        pa.field("version_ms", pa.float64()),
        *(pa.field(name, TEXT, nullable=False) for name in OF_SURROUNDINGS),
        pa.field("metric", TEXT, nullable=False),
        pa.field("reference_figure", pa.float64()),
        pa.field("version_figure", pa.float64()),
        pa.field("commit", TEXT, nullable=False),
        pa.field("judge", TEXT, nullable=False),
    ],
    metadata={LAYOUT: str(CURRENT)},
)


class Unreadable(Exception):
    """A file whose content tfcompare never wrote."""


class TooNew(Exception):
    """A file written by a tfcompare newer than this one."""


def to_table(points: Iterable[Point]) -> pa.Table:
    return pa.Table.from_pylist([_row(point) for point in points], schema=SCHEMA)


def _row(point: Point) -> dict[str, Any]:
    row = asdict(point)
    return {**row, **row.pop("surroundings")}


def to_points(table: pa.Table) -> list[Point]:
    # Points of a night share what surrounds them; so do most nights.
    shared: dict[tuple[str, ...], Surroundings] = {}
    columns = {name: table.column(name).to_pylist() for name in SCHEMA.names}
    around = [columns.pop(name) for name in OF_SURROUNDINGS]
    points = []
    for values, *row in zip(zip(*around, strict=True), *columns.values(), strict=True):
        if values not in shared:
            shared[values] = Surroundings(**dict(zip(OF_SURROUNDINGS, values, strict=True)))
        points.append(Point(**dict(zip(columns, row, strict=True)), surroundings=shared[values]))
    return points


def current(table: pa.Table) -> pa.Table:
    """Convert a file's table to the current layout; raise Unreadable or TooNew if that is impossible."""
    layout = (table.schema.metadata or {}).get(LAYOUT.encode(), b"").decode()
    if not layout.isdecimal():
        raise Unreadable("it does not say which layout it has")
    number = int(layout)
    if number > CURRENT:
        raise TooNew(f"its layout is {number}, and this tfcompare knows no newer one than {CURRENT}")
    while number < CURRENT:
        table = MIGRATIONS[number](table)
        number += 1
    if missing := [name for name in SCHEMA.names if name not in table.schema.names]:
        raise Unreadable(f"it has no column {missing[0]}")
    try:
        return table.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise Unreadable(str(error)) from error


def _all_were_screens(table: pa.Table) -> pa.Table:
    """Add the stage to layout 1, in which every measurement was a screen."""
    return table.append_column("stage", pa.array(["screen"] * len(table), TEXT))


def _without_a_worker(table: pa.Table) -> pa.Table:
    """Add the worker to layout 2, which did not record which worker measured."""
    return table.append_column("worker", pa.array([""] * len(table), TEXT))


def _without_variables(table: pa.Table) -> pa.Table:
    """Add the variables to layout 3, which did not record them."""
    for name in ("variables", "reference_variables"):
        table = table.append_column(name, pa.array([""] * len(table), TEXT))
    return table


def _times_alone(table: pa.Table) -> pa.Table:
    """Add what layout 4 lacked: the metric and its figures, and more of the machine."""
    for name in ("boot", "microcode", "governor"):
        table = table.append_column(name, pa.array([""] * len(table), TEXT))
    table = table.append_column("metric", pa.array([TIME] * len(table), TEXT))
    for name in ("reference", "version"):
        times = table.column(f"{name}_ms") if f"{name}_ms" in table.schema.names else pa.nulls(len(table), pa.float64())
        table = table.append_column(f"{name}_figure", times)
    return table


def _without_commits(table: pa.Table) -> pa.Table:
    """Add the commit to layout 5, which did not record it."""
    return table.append_column("commit", pa.array([""] * len(table), TEXT))


def _by_wall_time(table: pa.Table) -> pa.Table:
    """Add the judged time to layout 6, in which all verdicts on times rested on wall time."""
    return table.append_column("judge", pa.array(["wall"] * len(table), TEXT))


MIGRATIONS: dict[int, Callable[[pa.Table], pa.Table]] = {
    1: _all_were_screens,
    2: _without_a_worker,
    3: _without_variables,
    4: _times_alone,
    5: _without_commits,
    6: _by_wall_time,
}
