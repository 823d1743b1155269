"""Flags for what is printed, where results are written, and who hears of them."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options.declare import Group, choice
from orchestrator.cli.talk import PrintingView
from orchestrator.errors import TfCompareError
from orchestrator.exports import EXPORTS
from orchestrator.metrics.gates import Gate, Gated, describe_uncounted, find_gate_error, parse_gates
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    from orchestrator.terminal.progress import DrawTable

FORMATS = ("table", "json")
REPORT_FORMATS = (*FORMATS, "html")


@dataclass(frozen=True, kw_only=True)
class RunFolderFlags(Group):
    panel = "Output"

    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Run folder; runs/<stamp> if not given.", metavar="FOLDER"),
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
            "What is printed on stdout; html is a page in the run folder.",
            elsewhere={
                name: f"`tfcompare export RUN --format {name}` writes that"
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


def _check_gates(text: str) -> str:
    parse_gates(text)
    return text


@dataclass(frozen=True, kw_only=True)
class FailOnFlags(Group):
    panel = "Output"

    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            parser=_check_gates,
            metavar="OUTCOME,...",
            help="Exit with 1 if a comparison is slower, faster or inconclusive, or another metric has changed, e.g. "
            "'slower,memory:more>10%,output:differs'; with 6 if an arm died; with 3 if there is nothing to judge. "
            "What is not certain among all comparisons of the report counts as inconclusive, and so do exploratory "
            "verdicts without 'exploratory' in the list.",
        ),
    ] = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        return parse_gates(self.fail_on or "")

    def find_error(self, gated: Gated, view: View) -> TfCompareError | None:
        """Return the error for the outcomes that were asked for, if there are any; say which rows do not count."""
        if uncounted := describe_uncounted(self.gates, gated):
            view.say(uncounted)
        return find_gate_error(self.gates, gated)


@dataclass(frozen=True, kw_only=True)
class QuietFlags(Group):
    panel = "Output"

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors on stderr.")] = False

    # Only some commands have a flag for it.
    verbose = False

    @property
    def view(self) -> View:
        return View() if self.quiet else PrintingView()

    def say(self, text: str) -> None:
        self.view.say(text)

    def watch(self, draw_table: "DrawTable | None" = None) -> View:
        """Return the view of something that takes long, to be opened; on a terminal, it may draw what it measured."""
        from rich.console import Console

        from orchestrator.terminal.progress import choose_view

        return choose_view(Console(stderr=True), quiet=self.quiet, verbose=self.verbose, draw_table=draw_table)


@dataclass(frozen=True, kw_only=True)
class VerbosityFlags(QuietFlags):
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the output of builds and installs.")] = False


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
