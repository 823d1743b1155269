"""Which report of a run is shown, and where: in a terminal, through a pipe, or in a file."""

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from orchestrator.cli.options import ArrangementFlags
from orchestrator.cli.talk import say
from orchestrator.errors import UsageError
from orchestrator.model import Evaluation
from orchestrator.reports import DEFAULT, DETAILS, METRICS, PAGES, REPORTS, Report, usual_report
from orchestrator.reports.columns import parse_columns
from orchestrator.reports.filter_sort import Arrangement, arrangement
from orchestrator.terminal.output_file import check_output, write_output
from orchestrator.terminal.std_streams import write_utf8
from orchestrator.terminal.text import escape_unprintable, print_table, render_plain


@dataclass(frozen=True)
class ReportChoice:
    """How to show a run.

    Unless a table is named, a run of claims is shown by its claims, one of many versions as a trend, and any other run
    by its verdicts.
    """

    format: str = "table"
    table: str | None = None
    columns: tuple[str, ...] | None = None
    arrangement: Arrangement = field(default_factory=Arrangement)
    # What is compared in addition to times, if not what the run was planned for.
    metrics: tuple[str, ...] | None = None

    def show(self, evaluation: Evaluation, path: Path, output: str | None = None, last: str = "") -> None:
        """Show a run that has just been judged.

        Pages show more of the run, and read it themselves. `last` follows a table: a command, in one piece however wide
        the table is.
        """
        if self.format in PAGES:
            self.report(path, output)
        elif output not in (None, "-"):
            put(self._text(evaluation) + (f"\n\n{last}" if last else ""), output)
        elif self.format == "json":
            print(self._text(evaluation))
        else:
            print_table(lambda width: self._layout(evaluation, width))
            if last:
                print(f"\n{escape_unprintable(last)}")

    def report(self, path: Path, output: str | None) -> Evaluation:
        """Read and show a run folder."""
        # A mistake in the flags does not wait for the import of what judges.
        from orchestrator.reports.next_step import next_line
        from orchestrator.results.evaluation import judge_run
        from orchestrator.results.run_folder import RunFolder

        folder = RunFolder.open(path)
        page = PAGES.get(self.format)
        own = page.name if page and output is None else None
        if own:
            output = str(path / own)
        if output not in (None, "-"):
            check_output(Path(output))
        if page:
            text, run = page.make(path)
            if output == "-":
                write_utf8(text + "\n")
            else:
                put(text, output or "-", within=bool(own))
            return run.evaluation
        evaluation = judge_run(folder, metrics=self.metrics)
        self.show(evaluation, path, output, next_line(path, evaluation) if self.format == "table" else "")
        return evaluation

    def _text(self, evaluation: Evaluation) -> str:
        if self.format == "json":
            return self._report(evaluation).as_json(evaluation)
        return render_plain(lambda width: self._layout(evaluation, width))

    def _layout(self, evaluation: Evaluation, width: int) -> RenderableType:
        return self._report(evaluation).layout(evaluation, width, self.columns, self.arrangement)

    def _report(self, evaluation: Evaluation) -> Report:
        """Return the table to show; a program gets all of the run, unless it names a table."""
        if self.columns:
            return REPORTS[self.table or DETAILS]
        if self.metrics is not None and self.format == "table":
            return REPORTS[self.table or METRICS]
        if self.table or self.arrangement != Arrangement():
            return REPORTS[self.table or DEFAULT]
        return usual_report(evaluation.plan, complete=self.format == "json")


def choose_report(
    format: str, flags: ArrangementFlags, name: str | None = None, metrics: tuple[str, ...] | None = None
) -> ReportChoice:
    """Check that the flags go together, and return how to show a run."""
    columns = flags.columns
    if columns is not None and (format != "table" or not REPORTS[name or DETAILS].takes_columns):
        raise UsageError(f"--columns goes with --format table and --table {DETAILS}")
    for flag, value in (("--only", flags.only), ("--sort", flags.sort)):
        if value is not None and (format != "table" or not REPORTS[name or DEFAULT].arranged):
            raise UsageError(f"{flag} goes with --format table and --table {DEFAULT} or {DETAILS}")
    if format == "json" and name is not None and not REPORTS[name].json:
        raise UsageError(f"--table {name} is for reading; --format json without it holds the same figures")
    if format in PAGES and name is not None:
        raise UsageError(f"--table goes with --format table or json; a {format} page holds everything")
    if metrics is not None and format in PAGES:
        raise UsageError(
            f"--metric goes with --format table or json; a {format} page shows what the run was planned for"
        )
    arranged = arrangement(flags.only, flags.sort)
    return ReportChoice(format, name, parse_columns(columns) if columns else None, arranged, metrics)


def put(text: str, output: str, *, within: bool = False) -> None:
    """Write text to a file and report that, or print it on stdout."""
    if output == "-":
        print(text)
        return
    write_output(Path(output), text + "\n", within=within)
    say(f"written: {output}")
