"""`tfcompare compare`: two runs, ratio by ratio."""

import json
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options import FailOnFlags, FormatFlags, with_options
from orchestrator.cli.report import keep_garbage, raise_broken
from orchestrator.errors import FoundSlower
from orchestrator.terminal.text import print_table

app = typer.Typer()


@app.command()
@with_options
def compare(
    earlier: Annotated[Path, typer.Argument(help="A run directory.", metavar="EARLIER", show_default=False)],
    later: Annotated[
        Path, typer.Argument(help="A run directory of the same cases.", metavar="LATER", show_default=False)
    ],
    report: FormatFlags,
    alarm: FailOnFlags,
) -> None:
    """Compare two runs of the same cases: which ratios changed between them.

    [bold]Examples[/bold]

      tfcompare compare runs/monday runs/friday

      tfcompare compare runs/laptop runs/server --format json
    """
    from orchestrator.reports import changes
    from orchestrator.results.compare_runs import compare_runs

    keep_garbage()
    comparison = compare_runs(earlier, later)
    if report.format == "json":
        print(json.dumps(changes.as_object(comparison), indent=2))
    else:
        print_table(lambda width: changes.layout(comparison, width))
    raise_broken(comparison.broken)
    if alarm.fail_on == "slower" and comparison.slower:
        raise FoundSlower(f"{len(comparison.slower)} ratios are slower than they were (--fail-on slower)")
