"""Output of SQL results: as a table for people, or in a format for programs."""

import csv
import io
import math
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.terminal import output_file, strict_json
from orchestrator.terminal.text import render_plain, safe_text

FORMATS = ("table", "csv", "json", "parquet")
# A table shows at most this many rows; the other formats have them all.
MOST_ROWS = 1000


def check_answer_file(format: str, path: Path | None) -> None:
    """Raise UsageError if an output cannot be used, before anything is read."""
    if format == "parquet" and path is None:
        raise UsageError("--format parquet needs a file: add --output FILE")
    if path:
        output_file.check_output(path)


def format_result(result: pa.Table, format: str) -> str:
    if format == "json":
        names = _names(result)
        rows = [dict(zip(names, map(_json, row), strict=True)) for row in _rows(result)]
        return strict_json.dump(rows, indent=2) + "\n"
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(result.column_names)
    for row in _rows(result):
        writer.writerow(
            ["" if value is None else value if isinstance(value, (int, float)) else _text(value) for value in row]
        )
    return lines.getvalue()


def write_answer(result: pa.Table, format: str, path: Path) -> None:
    if format == "parquet":
        import pyarrow.parquet as pq

        buffer = pa.BufferOutputStream()
        try:
            pq.write_table(result.rename_columns(_names(result)), buffer, compression="zstd")
        except pa.ArrowException as error:
            raise UsageError(
                f"the result cannot be written as Parquet: {error}; cast the column, or use --format json"
            ) from error
        data = bytes(buffer.getvalue().to_pybytes())
    elif format == "table":
        data = (render_plain(lambda width: draw_answer(result)) + "\n").encode()
    else:
        data = format_result(result, format).encode()
    with output_file.writing_output(path):
        files.write_atomically(path, data)


def draw_answer(result: pa.Table) -> RenderableType:
    grid = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, of in zip(result.column_names, result.schema.types, strict=True):
        is_number = pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of)
        grid.add_column(safe_text(name), justify="right" if is_number else "left", overflow="fold")
    for row in _rows(result.slice(0, MOST_ROWS)):
        grid.add_row(*(safe_text(f"{value:.6g}" if isinstance(value, float) else _text(value)) for value in row))
    if result.num_rows > MOST_ROWS:
        return Group(
            grid, safe_text(f"the first {MOST_ROWS} of {result.num_rows} rows: --format csv has them all", style="dim")
        )
    return grid


def _rows(result: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in result.columns), strict=True)


def _names(result: pa.Table) -> list[str]:
    """Return the column names, made unique.

    SQL allows two columns with the same name, but a JSON object does not.
    """
    seen: dict[str, int] = {}
    names = []
    for name in result.column_names:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names


def _json(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _json(item) for name, item in value.items()}
    return value if value is None or isinstance(value, (str, int)) else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, list | dict):
        return strict_json.dump(_json(value), ensure_ascii=False)
    return str(value)
