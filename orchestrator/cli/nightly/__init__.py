"""The commands of `tfcompare nightly`, in the order of its help."""

import typer

from orchestrator.cli.nightly import notify, run, schedule

app = typer.Typer(
    help="Measure every night, keep what came out, and raise an alarm only when something really changed.",
    no_args_is_help=True,
)
for command in (run, schedule, notify):
    app.add_typer(command.app)
