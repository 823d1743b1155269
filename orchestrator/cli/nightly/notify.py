"""The command that tests whether notifications reach people: `tfcompare nightly notify-test`."""

import os

import typer

from orchestrator.cli.options import NotifyFlags, QuietFlags, with_options
from orchestrator.errors import UsageError

app = typer.Typer()


@app.command("notify-test")
@with_options
def notify_test(recipients: NotifyFlags, verbosity: QuietFlags) -> None:
    """Send a test message to every recipient of nightly notifications.

    [bold]Examples[/bold]

      tfcompare nightly notify-test --notify 'mailto://${USER}:${PASSWORD}@example.org'

      tfcompare nightly notify-test --notify-file ~/.config/tfcompare/notify
    """
    from orchestrator.nightly import notify as notifying
    from orchestrator.nightly.targets import VARIABLE, find_targets

    targets = find_targets(recipients.notify or (), recipients.notify_file, os.environ, verbosity.view)
    if not targets:
        raise UsageError(
            f"no recipient configured: pass --notify URL or --notify-file FILE, or set the variable {VARIABLE}"
        )
    if lost := notifying.try_out(targets, verbosity.view):
        raise UsageError("\n".join(lost))
