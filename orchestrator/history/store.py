"""The history's folder: files that are written once and never changed, so that it can be synced, versioned and shared.

points/2026-11/<started>-<run>.parquet   what a night measured
events/2026-11/<at>-<number>.json        what became of alarms, how nights ended
runs/<run>/                              run directories of the nights
quarantine/                              files that cannot be read
"""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from orchestrator import whole
from orchestrator.errors import UsageError
from orchestrator.history import schema
from orchestrator.history.model import Event, Point


@cache
def _events() -> TypeAdapter[Event]:
    return TypeAdapter(Event)


@dataclass(frozen=True)
class Read:
    """All that could be read, and a line about each file that could not."""

    table: pa.Table
    warnings: tuple[str, ...]

    def points(self) -> list[Point]:
        return schema.to_points(self.table)


class Store:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"

    def append(self, points: Sequence[Point]) -> Path:
        """A file of its own a run and stage: nobody who writes at the same time is in the way."""
        first = points[0]
        name = f"{first.started:%Y%m%d-%H%M%S}-{first.run}-{first.stage}.parquet"
        path = self._folder("points", f"{first.night:%Y-%m}") / name
        buffer = pa.BufferOutputStream()
        pq.write_table(schema.to_table(points), buffer, compression="zstd")
        self._write(path, buffer.getvalue().to_pybytes())
        return path

    def record(self, event: Event) -> Path:
        folder = self._folder("events", f"{event.at:%Y-%m}")
        path = folder / f"{event.at.astimezone(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}.json"
        self._write(path, _events().dump_json(event, indent=1) + b"\n")
        return path

    def read(self) -> Read:
        """Every point, those with the oldest start first."""
        tables, warnings = [], []
        for path in sorted(self.path.glob("points/*/*.parquet")):
            try:
                # Not through a dataset, which would make a column of the folder's name.
                table = schema.current(pq.ParquetFile(path).read())
                # Reading finds no damaged text; whatever uses the text later would.
                table.validate(full=True)
                tables.append(table)
            except schema.TooNew as error:
                warnings.append(f"{path} is left out: {error}; a newer tfcompare reads it")
            except (schema.Unreadable, pa.ArrowException, OSError, ValueError) as error:
                warnings.append(self._quarantine(path, str(error)))
        points = pa.concat_tables(tables) if tables else schema.SCHEMA.empty_table()
        order = [("started", "ascending"), ("run", "ascending"), ("stage", "descending")]
        return Read(points.sort_by(order), tuple(warnings))

    def events(self) -> tuple[list[Event], tuple[str, ...]]:
        """In the order in which they happened; and a line about each file that could not be read."""
        found, warnings = [], []
        for path in sorted(self.path.glob("events/*/*.json")):
            try:
                found.append(_events().validate_json(path.read_bytes()))
            except (ValidationError, OSError) as error:
                warnings.append(self._quarantine(path, str(error).splitlines()[0]))
        return sorted(found, key=lambda event: event.at), tuple(warnings)

    def known_runs(self) -> frozenset[str]:
        """The runs that have points here, told by the names of their files."""
        stems = (path.stem for path in self.path.glob("points/*/*.parquet"))
        return frozenset(stem.split("-", 2)[2].rpartition("-")[0] for stem in stems if stem.count("-") > 2)

    def _quarantine(self, path: Path, why: str) -> str:
        place = self.path / "quarantine" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{path.name}"
        try:
            place.parent.mkdir(exist_ok=True)
            os.replace(path, place)
        except OSError:
            return f"{path} cannot be read ({why}); it is left where it is, and nothing in it is used"
        return f"{path} cannot be read ({why}); it was moved to {place}, and everything else is used"

    def _folder(self, *parts: str) -> Path:
        folder = self.path.joinpath(*parts)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write the history {self.path}: {error.strerror}; take another folder") from error
        return folder

    def _write(self, path: Path, data: bytes) -> None:
        try:
            whole.write(path, data)
        except OSError as error:
            raise UsageError(
                f"cannot write {path}: {error.strerror}; once there is room, `tfcompare history import RUN` adds what "
                "was measured"
            ) from error
