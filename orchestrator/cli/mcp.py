"""`tfcompare mcp`: other programs use tfcompare, with fewer rights than the command line."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options import with_options
from orchestrator.errors import UsageError

app = typer.Typer()


@app.command("mcp")
@with_options
def serve_programs(
    allow: Annotated[
        list[Path] | None,
        typer.Option(
            "--allow",
            help="Programs may also use this folder, and run its workloads and programs without a container; "
            "repeatable.",
            metavar="FOLDER",
        ),
    ] = None,
) -> None:
    r"""Let another program use tfcompare here, through the Model Context Protocol.

    It communicates over stdin and stdout, works in the working directory, and
    has ten verbs: list, check, run, why, upgrade, compare, report, explain,
    bisect and doctor. Each answers with the JSON of the command line.
    Workloads and programs of the working directory run only in Docker, and
    nothing outside it is used, unless you pass --allow.

    It needs the package mcp: pip install 'tfcompare\[mcp]'.

    [bold]Examples[/bold]

      tfcompare mcp

      tfcompare mcp --allow .
    """
    folders = [path.resolve() for path in allow or ()]
    for path in folders:
        if not path.is_dir():
            raise UsageError(f"--allow {path}: no such folder")
    try:
        import anyio

        from orchestrator.cli.program_server import serve_stdio
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'tfcompare[mcp]'") from error
    from orchestrator.cli.verbs import ServedFolder

    anyio.run(serve_stdio, ServedFolder(Path.cwd().resolve(), tuple(folders)))
