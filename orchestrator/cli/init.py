"""`tfcompare init`: a workload to begin with."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import files
from orchestrator.bundled import WORKLOADS
from orchestrator.cli.options import with_options
from orchestrator.errors import UsageError

app = typer.Typer()
TEMPLATE, NAME = WORKLOADS / "template.txt", "training.py"


@app.command("init")
@with_options
def init(
    folder: Annotated[
        Path, typer.Argument(help="Where the workload goes; made if it does not exist.", metavar="FOLDER")
    ],
) -> None:
    """Write a commented workload into a folder, as a beginning for one with your code.

    [bold]Examples[/bold]

      tfcompare init mine
    """
    path = folder / NAME
    if path.exists():
        raise UsageError(f"{path} exists already; name another folder")
    with files.writing(str(path), "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(TEMPLATE.read_text())
    quoted = shlex.quote(str(folder))
    print(f"{path}: put your code into it, then")
    print(f"  tfcompare check {shlex.quote(str(path))} 2.13 2.16    # does it run, and how long does a call take?")
    print(f"  tfcompare run --versions 2.13,2.16 --workload-folder {quoted}")
