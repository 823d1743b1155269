"""The history as SQL views, in a database that exists only during a query and cannot access files or networks."""

import os
import re
import resource
import shlex
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.text import Text

from orchestrator import interrupts
from orchestrator.errors import UsageError
from orchestrator.history import schema
from orchestrator.history.alarms import state
from orchestrator.history.model import Alarm, AlarmOpened, Change, Event, Key, Night, StateChanged
from orchestrator.history.series import Values, all_arrays
from orchestrator.history.store import Read

TEXT, NUMBER, DAY, MOMENT = pa.string(), pa.float64(), pa.date32(), pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(TEXT)
KINDS = {TEXT: "text", NUMBER: "number", DAY: "date", MOMENT: "moment", pa.int32(): "integer", TEXTS: "texts"}
if TYPE_CHECKING:
    import duckdb

# A query may use this much memory in addition to the history; years of nights take a tenth of it.
MEMORY, MOST_BYTES = "2GB", 2 * 10**9
# This covers that memory and the answer. duckdb counts only its blocks; single texts and lists are outside of them.
ROOM_BYTES = 4 * 10**9
# Each thread takes memory, and a machine may have hundreds of cores.
MOST_THREADS = 4
BATCH = 100_000
TOO_LARGE = f"this takes more than {MEMORY} of memory: select fewer rows or columns"

OF_KEY = tuple((field.name, TEXT) for field in fields(Key))
OF_VALUE = (("effect", NUMBER), ("error", NUMBER), ("rounds", pa.int32()))
OF_CHANGE = tuple((field.name, DAY if field.type is date else NUMBER) for field in fields(Change))
SERIES = pa.schema(
    [
        ("series", TEXT), *OF_KEY, ("night", DAY), ("segment", pa.int32()), *OF_VALUE, ("ratio", NUMBER),
        ("ci_low", NUMBER), ("ci_high", NUMBER), ("control_effect", NUMBER), ("control_error", NUMBER),
    ]
)  # fmt: skip
ALARMS = pa.schema(
    [
        ("id", TEXT), ("state", TEXT), ("since", MOMENT), ("opened", MOMENT), ("note", TEXT), ("until", DAY),
        ("found_by", TEXT), ("series", TEXT), *OF_KEY, *OF_CHANGE, ("surroundings", TEXTS), ("run", TEXT),
        ("reproduce", TEXT), ("bisect", TEXT), ("why", TEXT), ("good", TEXT), ("bad", TEXT), ("commits", TEXT),
        ("findings", TEXTS),
    ]
)  # fmt: skip
EVENTS = pa.schema(
    [("moment", MOMENT), ("alarm", TEXT), ("state", TEXT), ("night", DAY), ("note", TEXT), ("until", DAY)]
)  # fmt: skip
NIGHTS = pa.schema(
    [
        ("ended", MOMENT), ("night", DAY), ("started", MOMENT), ("host", TEXT), ("suite", TEXT), ("targets", TEXTS),
        ("run", TEXT), ("outcome", TEXT), ("said", TEXTS), ("cells", pa.int32()), ("screened", pa.int32()),
        ("confirmed", pa.int32()), ("exit_code", pa.int32()),
    ]
)  # fmt: skip
# These columns hold the field `at`, whose name is a word of SQL.
FIELD_OF_COLUMN = {"moment": "at", "ended": "at"}
VIEWS: Mapping[str, tuple[str, pa.Schema]] = {
    "points": ("every comparison as it was measured, screens and confirmations apart", schema.SCHEMA),
    "series": ("a night of a series, its confirmation alone where it had one, next to the control arm's", SERIES),
    "alarms": ("every alarm in its present state", ALARMS),
    "events": ("state changes of alarms, one row per change", EVENTS),
    "nights": ("how each night ended", NIGHTS),
}
EXAMPLES = (
    "SELECT night, target, ratio FROM series WHERE series.case LIKE 'predict%' ORDER BY night, target",
    "SELECT target, host, count(*) AS nights, median(error) AS error FROM series GROUP BY ALL ORDER BY error DESC",
    "SELECT night, points.case, target, reason FROM points WHERE outcome = 'died' ORDER BY night",
    "SELECT date_trunc('month', first) AS month, count(*) AS alarms FROM alarms GROUP BY month ORDER BY month",
)


def query(sql: str, read: Read, events: Sequence[Event]) -> pa.Table:
    with _endable(), limit_memory():
        import duckdb

        connection = duckdb.connect(
            ":memory:",
            config={
                "enable_external_access": False,
                "autoload_known_extensions": False,
                "autoinstall_known_extensions": False,
                "python_enable_replacements": False,
                # There is no folder to spill into, so a query that is too large ends instead of filling the disk.
                "temp_directory": "",
                "max_temp_directory_size": "0B",
                "memory_limit": MEMORY,
                "threads": min(len(os.sched_getaffinity(0)), MOST_THREADS),
            },
        )
        with connection:
            for name, table in _tables(sql, read, events).items():
                connection.register(name, table)
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET lock_configuration = true")
            try:
                statements = connection.extract_statements(sql)
                if len(statements) != 1:
                    raise UsageError(f"a query is one SELECT, and this is {len(statements)}; {_name_views()}")
                if not _reads_only(connection, statements[0]):
                    raise UsageError("a query only reads: one SELECT; what was measured is never changed")
                return _read(connection.sql(sql))
            except duckdb.Error as error:
                raise _explain_error(error, sql) from error


@contextmanager
def limit_memory() -> Iterator[None]:
    """Limit the memory of this process through the kernel, and raise UsageError if it needs more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    status = Path("/proc/self/status").read_text()
    taken = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData:"))
    limits = [limit for limit in (taken + ROOM_BYTES, soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    except MemoryError as error:
        raise UsageError(TOO_LARGE) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _reads_only(connection: "duckdb.DuckDBPyConnection", statement: "duckdb.Statement") -> bool:
    import duckdb

    if statement.type != duckdb.StatementType.MULTI:
        return statement.type in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    # A PIVOT is several statements, since duckdb looks up its columns first. Only a query can be in parentheses.
    try:
        connection.extract_statements(f"FROM (\n{statement.query.removesuffix(';')}\n)")
    except duckdb.ParserException:
        return False
    return True


@contextmanager
def _endable() -> Iterator[None]:
    """Let signals end the process during a query.

    Deep in a query, duckdb may ignore signals for hours, and importing it turns an interrupt into an ImportError.
    Ending the process loses nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_DFL) for number in interrupts.NUMBERS}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _read(relation: "duckdb.DuckDBPyRelation") -> pa.Table:
    """Read a result of limited size, since duckdb's memory limit does not apply outside its own memory."""
    reader = relation.to_arrow_reader(BATCH)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > MOST_BYTES:
            raise UsageError(TOO_LARGE)
    return pa.Table.from_batches(batches, reader.schema)


def _tables(sql: str, read: Read, events: Sequence[Event]) -> dict[str, pa.Table]:
    """Return the table behind each view.

    A view that the query does not name is left empty: it only has to exist so that duckdb can list it.
    """
    builders = {
        "points": lambda: read.table,
        "series": lambda: _series(read.table),
        "alarms": lambda: pa.Table.from_pylist([_of_alarm(alarm) for alarm in state.current(events)], schema=ALARMS),
        "events": lambda: pa.Table.from_pylist(
            [_of_event(event) for event in events if isinstance(event, AlarmOpened | StateChanged)], schema=EVENTS
        ),
        "nights": lambda: pa.Table.from_pylist(
            [
                {name: getattr(event, FIELD_OF_COLUMN.get(name, name)) for name in NIGHTS.names}
                for event in events
                if isinstance(event, Night)
            ],
            schema=NIGHTS,
        ),
    }
    return {
        name: builders[name]() if re.search(rf"\b{name}\b", sql, re.IGNORECASE) else of.empty_table()
        for name, (_, of) in VIEWS.items()
    }


def _series(table: pa.Table) -> pa.Table:
    """Return the rows of the view `series`.

    They are built from columns: as objects, two years of many cases would take twenty seconds.
    """
    by_key = all_arrays(table)
    parts = []
    for key, arrays in by_key.items():
        beside = by_key[key.control].nightly if key.control in by_key else None
        same = {"series": key.id, **{name: str(getattr(key, name)) for name, _ in OF_KEY}}
        for segment, piece in enumerate(arrays.pieces):
            parts.append(_segment({**same, "segment": segment}, piece.values, beside))
    return pa.concat_tables(parts) if parts else SERIES.empty_table()


def _segment(same: dict[str, str | int], values: Values, beside: Values | None) -> pa.Table:
    import numpy as np

    half = values.half_widths()
    columns = {
        **{name: pa.repeat(pa.scalar(value, SERIES.field(name).type), len(values)) for name, value in same.items()},
        "night": pa.array(values.night, pa.int32()).cast(DAY),
        **{name: getattr(values, name) for name, _ in OF_VALUE},
        "ratio": np.exp(values.effect),
        "ci_low": np.exp(values.effect - half),
        "ci_high": np.exp(values.effect + half),
    }
    for name in ("effect", "error"):
        columns[f"control_{name}"] = pa.nulls(len(values), NUMBER)
    if beside and len(beside):
        at = np.minimum(np.searchsorted(beside.night, values.night), len(beside) - 1)
        missing = beside.night[at] != values.night
        for name in ("effect", "error"):
            columns[f"control_{name}"] = pa.array(getattr(beside, name)[at], NUMBER, mask=missing)
    return pa.table({name: columns[name] for name in SERIES.names}).cast(SERIES)


def _of_alarm(alarm: Alarm) -> dict[str, Any]:
    return {
        **{name: getattr(alarm, name, None) for name in ALARMS.names},
        "series": alarm.key.id,
        **{name: str(getattr(alarm.key, name)) for name, _ in OF_KEY},
        **{name: getattr(alarm.change, name) for name, _ in OF_CHANGE},
    }


def _of_event(event: AlarmOpened | StateChanged) -> dict[str, Any]:
    if isinstance(event, AlarmOpened):
        return {"moment": event.at, "alarm": event.alarm.id, "state": event.alarm.state, "note": event.alarm.note}
    return {name: getattr(event, FIELD_OF_COLUMN.get(name, name)) for name in EVENTS.names}


def _explain_error(error: Exception, sql: str) -> UsageError:
    """Return an error with duckdb's own message, and with the valid names if a name is unknown."""
    import duckdb

    text = " ".join(str(error).partition("\n\nLINE ")[0].split())
    if isinstance(error, duckdb.OutOfMemoryException):
        return UsageError(TOO_LARGE)
    if isinstance(error, duckdb.PermissionException):
        return UsageError(f"{text}: a query sees the history and nothing else, neither files nor networks")
    if isinstance(error, duckdb.CatalogException) and "Table with name" in text:
        # This leaves out duckdb's suggestion, which would be one of duckdb's own tables.
        return UsageError(f"{text.partition(' Did you mean')[0]} {_name_views()}")
    if isinstance(error, duckdb.BinderException):
        named = [name for name in VIEWS if re.search(rf"\b{name}\b", sql, re.IGNORECASE)]
        columns = "; ".join(f"{name} has {', '.join(VIEWS[name][1].names)}" for name in named)
        return UsageError(f"{text}{f' ({columns})' if columns else ''}")
    return UsageError(text)


def _name_views() -> str:
    return f"the views are {', '.join(VIEWS)}, and `tfcompare history query` lists their columns"


def listing() -> Iterator[Text]:
    for name, (description, of) in VIEWS.items():
        yield Text.assemble((name, "bold"), f": {description}")
        yield from (Text(f"  {field.name:<16} {KINDS[field.type]}", style="dim") for field in of)
        yield Text()
    yield Text("case is a word of SQL itself: write series.case. For example:")
    yield from (Text(f"  tfcompare history query {shlex.quote(example)}") for example in EXAMPLES)
