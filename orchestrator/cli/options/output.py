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
from orchestrator.metrics.gates import Gate, GatedComparisons, describe_uncounted, find_gate_error, parse_gates
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
        typer.Option("--output", "-o", help="Run folder. Default: runs/<stamp>.", metavar="FOLDER"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FormatFlags(Group):
    panel = "Output"

    format: Annotated[str, choice("--format", "format", FORMATS, "Output format.")] = "table"


@dataclass(frozen=True, kw_only=True)
class ReportFormatFlags(Group):
    panel = "Output"

    format: Annotated[
        str,
        choice(
            "--format",
            "format",
            REPORT_FORMATS,
            "Output format; html writes a page into the run folder.",
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
            help="Show the table of details with these columns, e.g. time,ratio,verdict; +build,first adds columns to "
            "the default ones.",
            metavar="NAME,...",
        ),
    ] = None
    only: Annotated[
        str | None,
        typer.Option("--only", help="Show only these verdicts and outcomes, e.g. slower,died.", metavar="OUTCOME,..."),
    ] = None
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            help="Sort by case (as planned), name, ratio (slowest first) or time (longest first). Prefix with '-' to "
            "reverse the order, e.g. -ratio.",
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
            help="Exit with 1 if a comparison has one of these outcomes, e.g. 'slower,inconclusive', or "
            "'memory:more>10%,output:differs' for other metrics. Exit with 6 if 'died' is listed and an arm (a case in "
            "one target) died, and with 3 if there is nothing to judge. A verdict counts as inconclusive if it is "
            "certain only when its comparison is judged alone, and not together with all others of the report. So "
            "does an exploratory verdict (from rounds added after the planned ones), unless 'exploratory' is listed.",
        ),
    ] = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        return parse_gates(self.fail_on or "")

    def find_error(self, gated: GatedComparisons, view: View) -> TfCompareError | None:
        """Return the error for the outcomes that were asked for, if there are any; say which rows do not count."""
        if uncounted := describe_uncounted(self.gates, gated):
            view.say(uncounted)
        return find_gate_error(self.gates, gated)


@dataclass(frozen=True, kw_only=True)
class QuietFlags(Group):
    panel = "Output"

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="On stderr, print only errors.")] = False

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
