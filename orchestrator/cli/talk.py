"""What commands say to the user beside their output, and what they ask."""

import sys

import typer
from rich.console import Console

from orchestrator.errors import UsageError
from orchestrator.terminal.text import lines


def say(text: str) -> None:
    """Print a text on stderr."""
    Console(stderr=True).print(lines(text), soft_wrap=True)


def confirm(question: str, yes: bool, done: str) -> None:
    """Ask before something is `done`, unless the user said yes; end the command if the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"nothing was {done}: nobody can be asked here; --yes does not ask")
    if not typer.confirm(question, err=True):
        print(f"nothing was {done}")
        raise typer.Exit
