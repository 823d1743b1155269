"""`tfcompare history query`: the history in SQL."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.history.common import open_store, warn
from orchestrator.cli.options import FormatFlags, HistoryFlags, choice, with_options
from orchestrator.cli.talk import say
from orchestrator.terminal.text import print_table

# `sql_output` has the same list, but importing it would load pyarrow; a test keeps the two lists equal.
QUERY_FORMATS = ("table", "csv", "json", "parquet")

app = typer.Typer()


@app.command("query")
@with_options
def query_history(
    history: HistoryFlags,
    sql: Annotated[
        str | None,
        typer.Argument(help="One SELECT statement; without it, views and columns are listed.", metavar="SQL"),
    ] = None,
    format: Annotated[
        str, choice("--format", "format", QUERY_FORMATS, "Output format.", rich_help_panel=FormatFlags.panel)
    ] = "table",
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A file, or - for stdout.", metavar="FILE", show_default=False)
    ] = None,
) -> None:
    """Query the history in SQL; without a query, list its views and columns.

    [bold]Examples[/bold]

      tfcompare history query

      tfcompare history query 'SELECT night, target, ratio FROM series ORDER BY night'

      tfcompare history query 'SELECT * FROM points' --format parquet --output points.parquet
    """
    from orchestrator.history import sql as query
    from orchestrator.history import sql_output
    from orchestrator.history.terminal import plot

    if sql is None:
        plot.print_unbroken(query.listing())
        return
    path = None if output in (None, "-") else Path(output or "")
    sql_output.check_answer_file(format, path)
    store = open_store(history)
    read = store.read()
    events, more = store.events()
    warn((*read.warnings, *more))
    answer = query.query(sql, read, events)
    # The text of an answer takes several times the memory of the answer.
    with query.limit_memory():
        if path:
            sql_output.write_answer(answer, format, path)
            say(f"written: {path}")
        elif format == "table":
            print_table(lambda width: sql_output.draw_answer(answer))
        else:
            print(sql_output.format_result(answer, format), end="")
