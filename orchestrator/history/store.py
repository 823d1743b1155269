"""The history's folder: files that are written once and never changed, so that it can be synced, versioned and shared.

points/2026-11/<started>-<run>.parquet   what a nightly run measured
events/2026-11/<at>-<number>.json        what happened to alarms, how nightly runs ended
runs/<run>/                              run folders of the nightly runs
quarantine/                              files whose content could not be understood
"""

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from orchestrator import files, formats
from orchestrator.history import schema
from orchestrator.history.model import Event, Point, parse_judge
from orchestrator.metrics.followed import from_name
from orchestrator.model import Target
from orchestrator.terminal import strict_json

T = TypeVar("T")


@cache
def _events() -> TypeAdapter[Event]:
    return TypeAdapter(Event)


@dataclass(frozen=True)
class Read:
    """All points that could be read, and one line about each file that could not."""

    table: pa.Table
    warnings: tuple[str, ...]

    def points(self) -> list[Point]:
        return schema.to_points(self.table)

    def until(self, now: datetime, host: str) -> "Read":
        """Return a copy without the points that a host measured after `now`."""
        past = pc.less_equal(self.table.column("started"), pa.scalar(now, schema.SCHEMA.field("started").type))
        return Read(self.table.filter(pc.or_(past, pc.not_equal(self.table.column("host"), host))), self.warnings)


class Store:
    """A history; with `quarantine`, files without any usable content are moved away when they are read."""

    def __init__(self, path: Path, *, quarantine: bool = False) -> None:
        self.path = path
        self.runs = path / "runs"
        self._moves = quarantine

    def append(self, points: Sequence[Point]) -> Path:
        """Write points to a separate file for each run and stage, so that concurrent writers do not collide."""
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
        facts = strict_json.dump(_events().dump_python(event, mode="json"), indent=1)
        self._write(path, formats.EVENT.stamp(facts.encode()) + b"\n")
        return path

    def read(self) -> Read:
        """Read every point, oldest start first."""
        tables, warnings = self._parse_files("points/*/*.parquet", _table)
        points = pa.concat_tables(tables) if tables else schema.SCHEMA.empty_table()
        order = [("started", "ascending"), ("run", "ascending"), ("stage", "descending")]
        return Read(points.sort_by(order), tuple(warnings))

    def events(self) -> tuple[list[Event], tuple[str, ...]]:
        """Return the events in chronological order, and one line about each file that could not be read."""
        events, warnings = self._parse_files(
            "events/*/*.json", lambda data: _events().validate_json(formats.EVENT.unstamp(data))
        )
        return sorted(events, key=lambda event: event.at), tuple(warnings)

    def _parse_files(self, pattern: str, parse: Callable[[bytes], T]) -> tuple[list[T], list[str]]:
        """Return the parsed files, and one line about each file that is left out."""
        parsed, warnings = [], []
        for path in sorted(self.path.glob(pattern)):
            try:
                data = path.read_bytes()
            except OSError as error:
                # This says nothing about the content: another user, or a later attempt, may be able to read it.
                warnings.append(f"{path} is left out: {error.strerror}")
                continue
            try:
                parsed.append(parse(data))
            except formats.OtherFormat as error:
                warnings.append(f"{path} is left out: {error}")
            except (schema.Unreadable, pa.ArrowException, OSError, ValueError, RecursionError) as error:
                warnings.append(self._unreadable(path, str(error).splitlines()[0]))
        return parsed, warnings

    def list_runs(self) -> frozenset[str]:
        """Return the runs that have points here, according to the names of their files."""
        stems = (path.stem for path in self.path.glob("points/*/*.parquet"))
        return frozenset(stem.split("-", 2)[2].rpartition("-")[0] for stem in stems if stem.count("-") > 2)

    def _unreadable(self, path: Path, why: str) -> str:
        """Move the file to quarantine if this store does that, and return a line about it."""
        message = f"{path} is left out, since it cannot be read: {why}"
        if not self._moves:
            return message
        target = self.path / "quarantine" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{path.name}"
        try:
            target.parent.mkdir(exist_ok=True)
            os.replace(path, target)
        except OSError as error:
            return f"{message}; it could not be moved: {error.strerror}"
        return f"{message}; it was moved to {target}"

    def _folder(self, *parts: str) -> Path:
        folder = self.path.joinpath(*parts)
        with files.writing(f"the history {self.path}", "take another folder"):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _write(self, path: Path, data: bytes) -> None:
        with files.writing(path, "once there is room, `tfcompare history import RUN` adds what was measured"):
            files.write_atomically(path, data)


def _table(data: bytes) -> pa.Table:
    # The file is not read as a dataset, which would turn the folder's name into a column.
    table = schema.check_points(pq.ParquetFile(pa.BufferReader(data)).read())
    # Reading does not detect damaged text; it would only fail later, where the text is used.
    table.validate(full=True)
    for name in ("target", "reference"):
        for text in pc.unique(table.column(name)).to_pylist():
            Target.parse(text)
    for text in pc.unique(table.column("metric")).to_pylist():
        from_name(text)
    for text in pc.unique(table.column("judge")).to_pylist():
        parse_judge(text)
    return table
