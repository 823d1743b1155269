"""The commands of `tfcompare nightly`, in the order of its help."""

import typer

from orchestrator.cli.nightly import notify, run, schedule

app = typer.Typer(
    help="Measure every night, keep the results, and raise an alarm only when something changed.",
    no_args_is_help=True,
)
for command in (run, schedule, notify):
    app.add_typer(command.app)
