"""The commands of `tfcompare images`, in the order of its help."""

import typer

from orchestrator.cli.images import archive, build, lock, prune, verify

app = typer.Typer(
    help="Build, list, verify, move and remove the container images of TensorFlow versions.",
    no_args_is_help=True,
)
for command in (build, verify, prune, lock, archive):
    app.add_typer(command.app)
