"""Prints messages to the user in addition to a command's output, and asks questions."""

import sys

import typer

from orchestrator.errors import UsageError
from orchestrator.terminal.view import View


def say(text: str) -> None:
    """Print a text on stderr."""
    # Completion prints no message, so it must not wait for the import of rich.
    from rich.console import Console

    from orchestrator.terminal.text import escape_lines

    console = Console(stderr=True)
    console.print(escape_lines(text), soft_wrap=not console.is_terminal)


class PrintingView(View):
    """A view that prints lines, and shows no progress."""

    def say(self, text: str) -> None:
        say(text)


def confirm(question: str, yes: bool, done: str) -> None:
    """Ask before something is `done`, unless the user said yes; end the command if the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"nothing was {done}: stdin is not a terminal, so no question can be asked; --yes skips it")
    if not typer.confirm(question, err=True):
        print(f"nothing was {done}")
        raise typer.Exit
