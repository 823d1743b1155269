"""Flags for the history of nightly runs, and for their notifications."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options.declare import Group


@dataclass(frozen=True, kw_only=True)
class HistoryFlags(Group):
    panel = "History"

    history: Annotated[
        Path | None,
        typer.Option(
            "--history",
            envvar="TFCOMPARE_HISTORY",
            help="History folder. Default: ~/.local/share/tfcompare/history.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class NotifyFlags(Group):
    panel = "Notification"

    notify: Annotated[
        list[str] | None,
        typer.Option(
            "--notify",
            help="Recipient, as an apprise URL; ${NAME} in it is read from the environment; repeatable.",
            metavar="URL",
        ),
    ] = dataclasses.field(default=None, repr=False)
    notify_file: Annotated[
        Path | None,
        typer.Option("--notify-file", help="File of such URLs, one per line.", metavar="FILE"),
    ] = None
