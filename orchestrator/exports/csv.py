"""A flat table as comma-separated values, for spreadsheets and programs that read nothing better."""

import pyarrow as pa
import pyarrow.csv

from orchestrator.results.run import Run
from orchestrator.terminal.text import escape_unprintable

# A spreadsheet runs a cell that begins with one of these as a formula; some also accept the full-width forms.
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def render(run: Run, table: str) -> str:
    data = run.to_arrow(table)
    columns = {escape_unprintable(name): _escape_column(data[name]) for name in data.column_names}
    sink = pa.BufferOutputStream()
    # pyarrow before 24 writes some rows twice if a table comes in several pieces.
    pyarrow.csv.write_csv(pa.table(columns).combine_chunks(), sink)
    return str(sink.getvalue().to_pybytes(), "utf-8").rstrip("\n")


def _escape_column(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Make the text in a column harmless, one distinct value at a time: millions of rows have few of them."""
    coded = pa.types.is_dictionary(column.type)
    if not coded and not pa.types.is_string(column.type):
        return column
    combined = column.combine_chunks()
    combined = combined if coded else combined.dictionary_encode()
    escaped = map(escape_unprintable, combined.dictionary.to_pylist())
    words = pa.array([f"'{word}" if word.startswith(FORMULA) else word for word in escaped], pa.string())
    return words.take(combined.indices)
