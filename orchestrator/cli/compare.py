"""`tfcompare compare`: two runs, ratio by ratio."""

import json
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import help, parse
from orchestrator.cli.options import FailOn, Format, known_fail_on
from orchestrator.cli.report import keep_garbage, raise_broken
from orchestrator.errors import FoundSlower
from orchestrator.reports import changes as changes_report
from orchestrator.results.compare_runs import compare_runs
from orchestrator.terminal.text import draw

app = typer.Typer()


@app.command(help=help.COMPARE)
def compare(
    earlier: Annotated[Path, typer.Argument(help="A run directory.", metavar="EARLIER", show_default=False)],
    later: Annotated[
        Path, typer.Argument(help="A run directory of the same cases.", metavar="LATER", show_default=False)
    ],
    format: Format = "table",
    fail_on: FailOn = None,
) -> None:
    keep_garbage()
    parse.known_format(format)
    known_fail_on(fail_on)
    found = compare_runs(earlier, later)
    if format == "json":
        print(json.dumps(changes_report.as_object(found), indent=2))
    else:
        draw(lambda width: changes_report.layout(found, width))
    raise_broken(found.broken)
    if fail_on == "slower" and found.slower:
        raise FoundSlower(f"{len(found.slower)} ratios are slower than they were (--fail-on slower)")
