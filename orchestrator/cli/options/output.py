"""Flags for what is printed, and where results are written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options.declare import Group, choice
from orchestrator.cli.talk import say

FORMATS = ("table", "json")
REPORT_FORMATS = (*FORMATS, "html")


@dataclass(frozen=True, kw_only=True)
class RunDirectoryFlags(Group):
    panel = "Output"

    output: Annotated[Path | None, typer.Option("--output", "-o", help="Run directory; runs/<stamp> if not given.")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class FormatFlags(Group):
    panel = "Output"

    format: Annotated[str, choice("--format", "format", FORMATS, "What is printed on stdout.")] = "table"


@dataclass(frozen=True, kw_only=True)
class ReportFormatFlags(Group):
    panel = "Output"

    format: Annotated[
        str,
        choice("--format", "format", REPORT_FORMATS, "What is printed on stdout; html is a page in the run directory."),
    ] = "table"


@dataclass(frozen=True, kw_only=True)
class ArrangementFlags(Group):
    """The flags that arrange the table of verdicts."""

    panel = "Output"

    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", help="Columns of the table, e.g. time,ratio,verdict; +build,first adds to the usual ones."
        ),
    ] = None
    only: Annotated[
        str | None, typer.Option("--only", help="Show only what is e.g. slower, or slower,faster,died.")
    ] = None
    sort: Annotated[
        str | None,
        typer.Option("--sort", help="Sort cases by case, name, ratio or time; prefix with - for descending order."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FailOnFlags(Group):
    panel = "Output"

    fail_on: Annotated[
        str | None, choice("--fail-on", "outcome", ("slower",), "Exit with 1 if a comparison has this outcome.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class QuietFlags(Group):
    panel = "Output"

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing on stderr but errors.")] = False

    def say(self, text: str) -> None:
        if not self.quiet:
            say(text)


@dataclass(frozen=True, kw_only=True)
class VerbosityFlags(QuietFlags):
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show builds and installs as they go.")] = False
