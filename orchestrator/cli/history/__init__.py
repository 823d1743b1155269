"""The commands of `tfcompare history`, in the order of its help."""

import typer

from orchestrator.cli.history import alarms, import_run, query, show, site

app = typer.Typer(
    cls=show.CaseOrCommand,
    help=show.HISTORY,
    subcommand_metavar="| COMMAND [ARGS]...",
)
for command in (show, query, import_run, alarms, site):
    app.add_typer(command.app)
