"""`tfcompare fleet`: names, shows and forgets machines that measure together."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from orchestrator.cli.talk import PrintingView
from orchestrator.errors import UsageError
from orchestrator.terminal.text import safe_text

app = typer.Typer(
    help="Register, show and remove machines that measure together over ssh.",
    no_args_is_help=True,
)


@app.command()
def up(
    hosts: Annotated[
        list[str],
        typer.Argument(
            help="Machines to measure on, by the names that ssh knows; localhost is this machine.",
            metavar="HOST",
            show_default=False,
        ),
    ],
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            help="Label of a machine, for --where, e.g. gpu1:gpu=a100; repeatable.",
            metavar="HOST:NAME=VALUE",
        ),
    ] = None,
    ssh: Annotated[
        str, typer.Option("--ssh", help="Command that connects to a machine, e.g. 'ssh -p 2222'.", metavar="COMMAND")
    ] = "ssh",
    prefix: Annotated[
        Path | None,
        typer.Option(
            "--prefix",
            help="Folder of the virtual environment with tfcompare on the machines. Default: the same path as here.",
            show_default=False,
            metavar="FOLDER",
        ),
    ] = None,
) -> None:
    """Contact each machine over ssh, and register those that answer; runs with --on auto use them.

    The same version of tfcompare must be installed on all of them. Nothing runs or listens there until a run starts.

    [bold]Examples[/bold]

      tfcompare fleet up gpu1 gpu2 --label gpu1:gpu=a100 --label gpu2:gpu=t4

      tfcompare run --versions 2.13,2.16 --on auto --where gpu=a100
    """
    from orchestrator.fleet import machines

    labels: dict[str, dict[str, str]] = {}
    for word in label or ():
        host, _, pair = word.partition(":")
        name, _, value = pair.partition("=")
        if host not in hosts or not name or not value:
            raise UsageError(f"--label {word}: a host of this command, a label and its value, e.g. gpu1:gpu=a100")
        labels.setdefault(host, {})[name] = value
    machines.register_machines(hosts, labels, shlex.split(ssh), prefix or Path(sys.prefix), PrintingView())
    print("tfcompare run --on auto")


@app.command()
def status() -> None:
    """Show the hardware, engines and load of each machine in the fleet.

    [bold]Examples[/bold]

      tfcompare fleet status
    """
    from orchestrator.fleet.conduct import list_hosts
    from orchestrator.fleet.model import EXISTING, FleetOptions
    from orchestrator.terminal.text import print_table

    table = Table(box=None, header_style="bold")
    for heading in ("host", "CPU", "cores", "GPUs", "engines", "load"):
        table.add_column(heading)
    for name, report in list_hosts(FleetOptions(on=EXISTING), "auto", PrintingView()):
        facts = report.facts
        engines = ", ".join(engine for engine, silent in report.engines.items() if not silent)
        gpus = ", ".join(str(gpu.name) for gpu in report.gpus)
        cells = (name, facts.get("cpu"), facts.get("usable_cores"), gpus, engines, facts.get("load"))
        table.add_row(*(safe_text("-" if cell in (None, "") else str(cell)) for cell in cells))
    print_table(lambda width: table)


@app.command()
def down() -> None:
    """Remove the machines that `tfcompare fleet up` registered; nothing has to be stopped on them.

    [bold]Examples[/bold]

      tfcompare fleet down
    """
    from orchestrator.fleet import machines

    machines.forget_machines()
