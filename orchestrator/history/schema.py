"""The layout of points in Parquet files: its columns and its format mark."""

from collections.abc import Iterable
from dataclasses import asdict, fields

import pyarrow as pa

from orchestrator.formats import POINTS
from orchestrator.history.model import Point, Surroundings

TEXT = pa.string()
FORMAT = "format"
OF_SURROUNDINGS = tuple(field.name for field in fields(Surroundings))
SCHEMA = pa.schema(
    [
        pa.field("night", pa.date32(), nullable=False),
        pa.field("started", pa.timestamp("us", tz="UTC"), nullable=False),
        *(pa.field(name, TEXT, nullable=False) for name in ("run", "stage", "suite", "host", "engine", "device")),
        *(pa.field(name, TEXT, nullable=False) for name in ("reference", "target", "build", "case")),
        pa.field("outcome", TEXT, nullable=False),
        pa.field("reason", TEXT, nullable=False),
        pa.field("effect", pa.float64()),
        pa.field("error", pa.float64()),
        pa.field("rounds", pa.int32(), nullable=False),
        pa.field("verdict", TEXT, nullable=False),
        pa.field("metric", TEXT, nullable=False),
        pa.field("reference_figure", pa.float64()),
        pa.field("target_figure", pa.float64()),
        *(pa.field(name, TEXT, nullable=False) for name in OF_SURROUNDINGS),
        pa.field("commit", TEXT, nullable=False),
        pa.field("judge", TEXT, nullable=False),
    ],
    metadata={FORMAT: POINTS.mark},
)


class Unreadable(Exception):
    """The error for a file whose content tfcompare cannot have written."""


def to_table(points: Iterable[Point]) -> pa.Table:
    rows = map(asdict, points)
    return pa.Table.from_pylist([{**row, **row.pop("surroundings")} for row in rows], schema=SCHEMA)


def to_points(table: pa.Table) -> list[Point]:
    # Most points have the same surroundings, so equal ones share one object.
    shared: dict[tuple[str, ...], Surroundings] = {}
    columns = {name: table.column(name).to_pylist() for name in SCHEMA.names}
    around = [columns.pop(name) for name in OF_SURROUNDINGS]
    points = []
    for values, *row in zip(zip(*around, strict=True), *columns.values(), strict=True):
        if values not in shared:
            shared[values] = Surroundings(**dict(zip(OF_SURROUNDINGS, values, strict=True)))
        points.append(Point(**dict(zip(columns, row, strict=True)), surroundings=shared[values]))
    return points


def check_points(table: pa.Table) -> pa.Table:
    """Return a file's table with exactly the columns of the layout; raise Unreadable, NoFormat or OtherFormat."""
    POINTS.check((table.schema.metadata or {}).get(FORMAT.encode(), b"").decode(errors="replace"))
    if missing := [name for name in SCHEMA.names if name not in table.schema.names]:
        raise Unreadable(f"it has no column {missing[0]}")
    try:
        return table.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise Unreadable(str(error)) from error
