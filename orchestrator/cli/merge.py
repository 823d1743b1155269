"""`tfcompare merge`: the runs of several machines as one."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import redact
from orchestrator.cli.options import ArrangementFlags, ReportFormatFlags, with_options
from orchestrator.cli.report import keep_garbage, raise_broken
from orchestrator.cli.runs import find_run
from orchestrator.cli.talk import say

app = typer.Typer()


@app.command()
@with_options
def merge(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders, each of other cases.", metavar="RUN...", parser=find_run, show_default=False),
    ],
    form: ReportFormatFlags,
    arrangement: ArrangementFlags,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the whole run; new or empty.", metavar="FOLDER", show_default=False
        ),
    ],
) -> None:
    """Combine runs of different cases, for example from several machines, into one and show it.

    They have to be of the same targets, engine, margin and rounds. No ratio is between two machines, since each case
    was measured on one.

    [bold]Examples[/bold]

      tfcompare merge shard-1 shard-2 --output whole

      tfcompare merge artifacts/* --output whole --format html
    """
    from orchestrator.cli.show import choose_report
    from orchestrator.results.merge import merge_runs as merge_runs

    keep_garbage()
    how = choose_report(form.format, None, arrangement.columns, arrangement.only, arrangement.sort)
    run = merge_runs(runs, output, redact.redact_words(sys.argv[1:]))
    say(f"run folder: {run.path}")
    raise_broken(how.report(run.path, None).broken)
