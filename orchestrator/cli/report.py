"""The commands that measure nothing: they show, compare and export runs, and list what is available."""

import gc
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli import help, parse
from orchestrator.cli.options import Columns, Only, Sort
from orchestrator.cli.show import shown
from orchestrator.errors import ContractBroken
from orchestrator.exports import EXPORTS
from orchestrator.profiling import report as profile_report
from orchestrator.profiling.model import Profiled
from orchestrator.profiling.run import PROFILE_FILE
from orchestrator.profiling.run import read as read_profile
from orchestrator.reports import REPORTS
from orchestrator.results.run import load_run
from orchestrator.terminal.text import draw, plain

app = typer.Typer()

TO = " or ".join(", ".join(EXPORTS).rsplit(", ", 1))
TABLED = " and ".join(name for name, entry in EXPORTS.items() if entry.table)
TABLES = "; ".join(f"{name}: {entry.about}" for name, entry in REPORTS.items())

RunDirectory = Annotated[Path, typer.Argument(help="A run directory.", metavar="RUN", show_default=False)]
Output = Annotated[str | None, typer.Option("--output", help="A file, or - for stdout.", show_default=False)]


@app.command(help=help.REPORT)
def report(
    run: RunDirectory,
    format: Annotated[str, typer.Option(help="table, json, or html (written to RUN/report.html).")] = "table",
    table: Annotated[
        str | None,
        typer.Option(help=f"{TABLES}."),
    ] = None,
    columns: Columns = None,
    only: Only = None,
    sort: Sort = None,
    output: Output = None,
) -> None:
    keep_garbage()
    how = shown(format, table, columns, only, sort)
    if (run / PROFILE_FILE).exists():
        parse.known_format(format)
        show_profile(read_profile(run), format)
        return
    raise_broken(how.report(run, output).broken)


@app.command(help=help.EXPORT)
def export(
    run: RunDirectory,
    to: Annotated[str, typer.Option(help=f"{TO}.", show_default=False)],
    table: Annotated[
        str | None, typer.Option(help=f"What {TABLED} hold: arms, contrasts, replicates or calls.")
    ] = None,
    output: Output = None,
) -> None:
    # The other commands need none of what writes these formats.
    from orchestrator import exports

    path = None if output in (None, "-") else Path(output)
    exports.check(to, table, path)
    keep_garbage()
    loaded = load_run(run)
    made = exports.export(loaded, to, table, path)
    if made.text is not None:
        print(made.text)
    for path in made.files:
        Console(stderr=True).print(plain(f"written: {path}"), soft_wrap=True)
    raise_broken(loaded.comparison.broken)


def show_profile(found: Profiled, format: str) -> None:
    if format == "json":
        print(json.dumps(profile_report.as_object(found), indent=2))
    else:
        draw(lambda width: profile_report.layout(found, width))


def keep_garbage() -> None:
    """Turn off garbage collection.

    A command that reads runs ends within seconds. Among the rows of a large run, searching for garbage takes a quarter
    of that time.
    """
    gc.disable()


def raise_broken(broken: tuple[str, ...]) -> None:
    """Raise an error for anything that could not be read.

    Everything that could be read has been shown by then; the exit code reports the rest.
    """
    if broken:
        raise ContractBroken("\n".join(broken))
