"""Flags for what is printed, and where results are written."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import typer

from orchestrator.cli import parse
from orchestrator.cli.options.declare import Group, choice
from orchestrator.cli.talk import say
from orchestrator.errors import ArmsDied, OutcomeFound, TfCompareError
from orchestrator.exports import EXPORTS

FORMATS = ("table", "json")
# What --fail-on takes.
OUTCOMES = ("slower", "inconclusive", "died")
REPORT_FORMATS = (*FORMATS, "html")


@dataclass(frozen=True, kw_only=True)
class RunDirectoryFlags(Group):
    panel = "Output"

    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Run directory; runs/<stamp> if not given.", metavar="DIR"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FormatFlags(Group):
    panel = "Output"

    format: Annotated[str, choice("--format", "format", FORMATS, "What is printed on stdout.")] = "table"


@dataclass(frozen=True, kw_only=True)
class ReportFormatFlags(Group):
    panel = "Output"

    format: Annotated[
        str,
        choice(
            "--format",
            "format",
            REPORT_FORMATS,
            "What is printed on stdout; html is a page in the run directory.",
            elsewhere={
                name: f"`tfcompare export RUN --to {name}` writes that"
                for name in EXPORTS
                if name not in REPORT_FORMATS
            },
        ),
    ] = "table"


@dataclass(frozen=True, kw_only=True)
class ArrangementFlags(Group):
    """The flags that arrange the table of verdicts."""

    panel = "Output"

    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            help="Columns of --table details, e.g. time,ratio,verdict; +build,first adds to the usual ones.",
            metavar="NAME,...",
        ),
    ] = None
    only: Annotated[
        str | None,
        typer.Option("--only", help="Show only these, e.g. slower or slower,faster,died.", metavar="OUTCOME,..."),
    ] = None
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            help="Sort by case (as planned), name, ratio (slowest first) or time (longest first); -ratio and the like "
            "reverse the order.",
            metavar="KEY",
        ),
    ] = None


class Judged(Protocol):
    @property
    def verdict(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class FailOnFlags(Group):
    panel = "Output"

    fail_on: Annotated[
        str | None,
        choice(
            "--fail-on",
            "outcome",
            OUTCOMES,
            "Exit with 1 if a comparison is slower or inconclusive, with 6 if an arm died.",
            several=True,
        ),
    ] = None

    @property
    def outcomes(self) -> tuple[str, ...]:
        return parse.names(self.fail_on or "")

    def find_error(self, judged: Collection[Judged], died: int = 0) -> TfCompareError | None:
        """Return the error for the outcomes that were asked for, if there are any."""
        if died and "died" in self.outcomes:
            return ArmsDied(f"{died} arms died (--fail-on {self.fail_on})")
        verdicts = Counter(comparison.verdict for comparison in judged)
        if found := [f"{verdicts[name]} {name}" for name in self.outcomes if verdicts[name]]:
            return OutcomeFound(f"{', '.join(found)} of {len(judged)} comparisons (--fail-on {self.fail_on})")
        return None


@dataclass(frozen=True, kw_only=True)
class QuietFlags(Group):
    panel = "Output"

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors on stderr.")] = False

    def say(self, text: str) -> None:
        if not self.quiet:
            say(text)


@dataclass(frozen=True, kw_only=True)
class VerbosityFlags(QuietFlags):
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the output of builds and installs.")] = False
