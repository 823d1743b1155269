"""`tfcompare history site`: the history as static pages."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.history.common import open_store, warn
from orchestrator.cli.options import HistoryFlags, with_options
from orchestrator.cli.talk import say

app = typer.Typer()


@app.command("site")
@with_options
def write_site(
    history: HistoryFlags,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the pages; older pages in it are replaced.",
            metavar="FOLDER",
            show_default=False,
        ),
    ],
    title: Annotated[
        str | None, typer.Option("--title", help="Heading of the first page.", metavar="TEXT", show_default=False)
    ] = None,
    runs_url: Annotated[
        str | None,
        typer.Option(
            "--runs-url",
            help="Address of the published run folders, if they are not next to the history.",
            metavar="URL",
        ),
    ] = None,
) -> None:
    """Write the history as static pages, with a feed of its alarms; they open without a server.

    [bold]Examples[/bold]

      tfcompare history site --output public
    """
    from orchestrator.history import site

    built = site.build_site(open_store(history), output, runs_url=runs_url, title=title)
    warn(built.warnings)
    say(f"written: {built.index} ({built.pages} pages, {built.cases} cases, {built.series} series)")
