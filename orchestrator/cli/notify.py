"""The command that tests whether notifications reach people: `tfcompare nightly notify-test`."""

import os

import typer
from rich.console import Console

from orchestrator.cli import help
from orchestrator.cli.options import Notify, NotifyFile, Quiet
from orchestrator.errors import UsageError
from orchestrator.terminal.text import plain

app = typer.Typer()


@app.command("notify-test", help=help.NIGHTLY_NOTIFY_TEST)
def notify_test(notify: Notify = None, notify_file: NotifyFile = None, quiet: Quiet = False) -> None:
    from orchestrator.nightly import notify as notifying

    errors = Console(stderr=True)

    def say(text: str) -> None:
        if not quiet:
            errors.print(plain(text), soft_wrap=True)

    targets = notifying.targets(notify or (), notify_file, os.environ, say)
    if not targets:
        raise UsageError(
            f"nobody to tell: name somebody with --notify URL, --notify-file FILE or the variable {notifying.VARIABLE}"
        )
    if lost := notifying.try_out(targets, say):
        raise UsageError("\n".join(lost))
