"""The commands of `tfcompare images`, in the order of its help."""

import typer

from orchestrator.cli.images import archive, build, list, lock, prune, verify

app = typer.Typer(
    help="Build the images of versions, look at them, check them, move them, and free what they take.",
    no_args_is_help=True,
)
for command in (build, list, verify, prune, lock, archive):
    app.add_typer(command.app)
