"""`tfcompare compare`: two runs, ratio by ratio."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options import FailOnFlags, ReportFormatFlags, with_options
from orchestrator.cli.report import Output, disable_garbage_collection, raise_broken
from orchestrator.cli.runs import find_run
from orchestrator.cli.talk import PrintingView
from orchestrator.errors import UsageError
from orchestrator.metrics import OUTPUT
from orchestrator.metrics.gates import check_compared
from orchestrator.terminal import output_file, strict_json
from orchestrator.terminal.text import print_table, render_plain

app = typer.Typer()

# The page has this name, in the folder of the later run.
PAGE = "changes.html"


@app.command()
@with_options
def compare(
    earlier: Annotated[
        Path, typer.Argument(help="Run folder, or `last`.", metavar="EARLIER", parser=find_run, show_default=False)
    ],
    later: Annotated[
        Path,
        typer.Argument(
            help="Run folder with the same cases, or `last`.", metavar="LATER", parser=find_run, show_default=False
        ),
    ],
    report: ReportFormatFlags,
    alarm: FailOnFlags,
    output: Output = None,
) -> None:
    """Compare two runs of the same cases: which ratios changed between them.

    --format html writes its page into the folder of LATER. Results are not compared, so --fail-on refuses `output`.

    [bold]Examples[/bold]

      tfcompare compare runs/monday runs/friday

      tfcompare compare runs/monday last

      tfcompare compare runs/laptop runs/server --format json

      tfcompare compare runs/monday runs/friday --format html
    """
    from orchestrator import catalog
    from orchestrator.cli.show import put
    from orchestrator.history.between_runs import find_between_run_variances
    from orchestrator.reports import changes
    from orchestrator.results.compare_runs import compare_runs
    from orchestrator.results.gated import gate_changes, name_compared

    disable_garbage_collection()
    paths = (earlier, later)
    if not any(path.exists() for path in paths) and all(catalog.find_version(str(path)) for path in paths):
        names = ",".join(map(str, paths))
        raise UsageError(f"`compare` takes two runs; to compare two versions: tfcompare run --versions {names}")
    own = report.format == "html" and output is None
    place = str(later / PAGE) if own else output or "-"
    if place != "-":
        output_file.check_output(Path(place))
    found = compare_runs(earlier, later, find_between_run_variances)
    if any(gate.metric == OUTPUT for gate in alarm.gates):
        raise UsageError(f"--fail-on {alarm.fail_on}: `compare` compares no results; leave {OUTPUT} out")
    for run in (found.earlier, found.later):
        what, advice = f"{run.path} does not compare", "measure it with --metric {metrics}"
        check_compared(alarm.gates, name_compared(run.plan), what, advice)
    if report.format == "html":
        from orchestrator.reports.html.changes import render_changes

        put(render_changes(found), place, within=own)
    elif report.format == "json":
        put(strict_json.dump(changes.changes_as_object(found), indent=2), place)
    elif place != "-":
        put(render_plain(lambda width: changes.layout_changes(found, width)), place)
    else:
        print_table(lambda width: changes.layout_changes(found, width))
    raise_broken(found.broken)
    if error := alarm.find_error(gate_changes(found), PrintingView()):
        raise error
