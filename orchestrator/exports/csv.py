"""A flat table as comma-separated values, for spreadsheets and programs that read nothing better."""

import pyarrow as pa
import pyarrow.csv

from orchestrator.results.run import Run
from orchestrator.terminal.text import escape_unprintable

# A spreadsheet takes a cell that begins so for a formula and runs it; some also in the wide forms.
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def render(run: Run, table: str) -> str:
    found = run.to_arrow(table)
    columns = {escape_unprintable(name): _escape_column(found[name]) for name in found.column_names}
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(pa.table(columns), sink)
    return str(sink.getvalue().to_pybytes(), "utf-8").rstrip("\n")


def _escape_column(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Make the text in a column harmless, one distinct value at a time: millions of rows have few of them."""
    coded = pa.types.is_dictionary(column.type)
    if not coded and not pa.types.is_string(column.type):
        return column
    whole = column.combine_chunks()
    whole = whole if coded else whole.dictionary_encode()
    words = pa.array([_cell(word) for word in whole.dictionary.to_pylist()], pa.string())
    return words.take(whole.indices)


def _cell(word: str) -> str:
    shown = escape_unprintable(word)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
