"""The commands that show, export and merge runs: `tfcompare report | export | comment | merge`."""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator import redact
from orchestrator.cli.options import (
    FORMATS,
    ArrangementFlags,
    FailOnFlags,
    MetricFlags,
    ReportFormatFlags,
    choice,
    with_options,
)
from orchestrator.cli.runs import LAST, find_run
from orchestrator.cli.talk import PrintingView, say
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.exports import EXPORTS
from orchestrator.metrics.gates import check_compared
from orchestrator.reports import REPORTS
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table, render_plain

if TYPE_CHECKING:
    from orchestrator.profiling.model import ProfileResult

app = typer.Typer()

TABLED = " and ".join(name for name, entry in EXPORTS.items() if entry.table)
ABOUT = "; ".join(f"{name}: {entry.about}" for name, entry in REPORTS.items())
# These are the names in results/tables.py, which is slow to import; a test keeps them equal.
FLAT_TABLES = ("arms", "comparisons", "metrics", "replicates", "calls")
# The export begins a comment with this heading, after which a name or a link to the page is inserted.
HEADING = "### tfcompare"

RunFolder = Annotated[
    Path,
    typer.Argument(help="Run folder, or `last` for the newest.", metavar="RUN", parser=find_run, show_default=False),
]
AnyRun = Annotated[
    Path | None,
    typer.Argument(
        help="Run folder, or a folder of runs to list. Default: `last`, the newest run below runs/.",
        metavar="RUN",
        parser=find_run,
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="A file, or - for stdout.",
        metavar="FILE",
        show_default=False,
        rich_help_panel=ReportFormatFlags.panel,
    ),
]


@app.command()
@with_options
def report(
    form: ReportFormatFlags,
    arrangement: ArrangementFlags,
    metric: MetricFlags,
    alarm: FailOnFlags,
    run: AnyRun = None,
    table: Annotated[
        str | None,
        choice(
            "--table",
            "table",
            REPORTS,
            f"{ABOUT}.",
            rich_help_panel=ReportFormatFlags.panel,
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            help="Explain the verdicts of this case in sentences.",
            metavar="CASE",
            show_default=False,
            rich_help_panel=ReportFormatFlags.panel,
        ),
    ] = None,
    output: Output = None,
) -> None:
    r"""Show the report of a run, as a table, as JSON or as an HTML page.

    [bold]Examples[/bold]

      tfcompare report

      tfcompare report runs/first

      tfcompare report runs/first --format json --output first.json

      tfcompare report runs/first --only slower,died --sort ratio

      tfcompare report runs/first --metric memory,build

      tfcompare report runs/first --fail-on 'slower,memory:more>10%'

      tfcompare report runs/first --format html

      tfcompare report runs/first --table study

      tfcompare report runs/all --table trend

      tfcompare report last --explain 'power\[style=function]'
    """
    disable_garbage_collection()
    if explain is not None:
        others = {
            "--table": table,
            "--columns": arrangement.columns,
            "--only": arrangement.only,
            "--sort": arrangement.sort,
        }
        if given := [flag for flag, value in {**others, "--fail-on": alarm.fail_on}.items() if value is not None]:
            raise UsageError(f"--explain: leave {', '.join(given)} out")
        _explain(run or find_run(LAST), explain, form.format, output, metric.names)
        return
    from orchestrator.cli.show import choose_report

    # A mistake in the flags is reported before the slow imports that read runs.
    how = choose_report(form.format, arrangement, table, metric.names)
    from orchestrator.profiling.stored import PROFILE_FILE, read_profile
    from orchestrator.results.find_runs import holds_runs

    if run is None:
        run = find_run(LAST)
    elif holds_runs(run):
        _refuse_gates(alarm, f"{run} contains several runs: name one")
        list_runs(run, form.format)
        return
    if (run / PROFILE_FILE).exists():
        _refuse_gates(alarm, f"{run} is a profile, which has no verdicts")
        if form.format not in FORMATS:
            raise UsageError(f"{run} is a profile: --format is {' or '.join(FORMATS)}")
        show_profile(read_profile(run), form.format)
        return
    from orchestrator.results.gated import gate_run, name_compared

    if alarm.gates:
        from orchestrator.results.run_folder import RunFolder

        compared = name_compared(RunFolder.open(run).read_plan()) if metric.names is None else metric.names
        check_compared(alarm.gates, compared, f"{run} does not compare", "name it: --metric {metrics}")
    evaluation = how.report(run, output)
    raise_broken(evaluation.broken)
    if error := alarm.find_error(gate_run(evaluation), PrintingView()):
        raise error


def _explain(run: Path, case: str, format: str, output: str | None, metrics: tuple[str, ...] | None) -> None:
    if format not in FORMATS:
        raise UsageError(f"--explain goes with --format {' or '.join(FORMATS)}")
    from orchestrator.cli.show import put
    from orchestrator.reports import explanation
    from orchestrator.reports.next_step import next_line
    from orchestrator.results.evaluation import judge_run
    from orchestrator.results.run_folder import RunFolder

    evaluation = judge_run(RunFolder.open(run), metrics=metrics)
    following = next_line(run, evaluation).removeprefix("Next:").strip()
    explained = explanation.explain_case(evaluation, case, following)
    if format == "json":
        put(strict_json.dump(explanation.as_object(explained), indent=2), output or "-")
    elif output not in (None, "-"):
        put(render_plain(lambda width: explanation.layout(explained)), str(output))
    else:
        print_table(lambda width: explanation.layout(explained))
    raise_broken(evaluation.broken)


def _refuse_gates(alarm: FailOnFlags, why: str) -> None:
    if alarm.gates:
        raise UsageError(f"--fail-on: {why}")


@app.command()
def export(
    run: RunFolder,
    format: Annotated[str, choice("--format", "format", EXPORTS, "Export format.", show_default=False)],
    table: Annotated[
        str | None, choice("--table", "table", FLAT_TABLES, f"Table to export, only for {TABLED}.")
    ] = None,
    inconclusive: Annotated[
        str | None,
        choice(
            "--inconclusive",
            "outcome",
            ("skipped", "passed"),
            "How junit reports an inconclusive comparison. Default: skipped.",
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Export a run to other formats, for spreadsheets, pull requests, CI or dashboards.

    [bold]Examples[/bold]

      tfcompare export runs/first --format csv --output first.csv

      tfcompare export last --format markdown

      tfcompare export runs/first --format parquet --table calls --output calls.parquet
    """
    # The other commands do not need the modules that write these formats.
    from orchestrator import exports
    from orchestrator.results.run import load_run

    path = None if output in (None, "-") else Path(output)
    exports.check_export(format, table, path, inconclusive=inconclusive)
    disable_garbage_collection()
    loaded = load_run(run)
    exported = exports.export_run(loaded, format, table, path, inconclusive=inconclusive)
    if exported.text is not None:
        print(exported.text)
    for path in exported.files:
        say(f"written: {path}")
    raise_broken(loaded.evaluation.broken)


@app.command()
def comment(
    run: RunFolder,
    name: Annotated[
        str,
        typer.Option(help="Name of the comment; jobs with different names have separate comments.", metavar="NAME"),
    ] = "tfcompare",
    link: Annotated[
        str | None,
        typer.Option(help="Address of the run's page, e.g. of a job's artefacts.", metavar="URL", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the comment and send nothing.")] = False,
) -> None:
    """Post or update a comment on this CI job's pull request with a run, an upgrade or saved models.

    The token comes from GITHUB_TOKEN in GitHub Actions, and from GITLAB_TOKEN (a project access token) in GitLab CI.

    [bold]Examples[/bold]

      tfcompare comment runs/first --dry-run

      tfcompare comment runs/first --name gpu --link https://ci.example.org/42/report.html
    """
    from orchestrator.exports import forges

    if link is not None and not (link.startswith("https://") and link.isascii() and link.isprintable()):
        raise UsageError(f"--link {link!r}: an address that begins with https://")
    forge = None if dry_run else forges.find_forge(os.environ)
    disable_garbage_collection()
    body = _render_comment(run)
    if name != "tfcompare":
        body = body.replace(HEADING, f"{HEADING}: {name}", 1)
    if link:
        body = body.replace("\n\n", f"\n\n[The whole report](<{link.replace('>', '%3E').replace('<', '%3C')}>)\n\n", 1)
    marked = forges.mark(name, body, forge.room if forge else 2**20)
    if forge is None:
        print(marked)
        return
    existed, address = forges.replace_comment(forge, name, marked)
    say(f"the comment was {'replaced' if existed else 'written'}{f': {address}' if address else ''}")


def _render_comment(folder: Path) -> str:
    """Return the text about what a folder holds, in which everything that a workload may have written is quoted."""
    from orchestrator.results.find_runs import MODELS, UPGRADE

    if (folder / MODELS).is_file():
        from orchestrator.saved_models.markdown import render_models_markdown
        from orchestrator.saved_models.stored import read_models

        return render_models_markdown(read_models(folder))
    if (folder / UPGRADE).is_file():
        from orchestrator.upgrade.page import render_upgrade_markdown
        from orchestrator.upgrade.report import UpgradeAnswer
        from orchestrator.upgrade.run import read_upgrade_outcome

        return render_upgrade_markdown(UpgradeAnswer(read_upgrade_outcome(folder)))
    from orchestrator.exports import markdown
    from orchestrator.results.run import load_run

    return markdown.render(load_run(folder))


@app.command()
@with_options
def merge(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders, each with different cases.", metavar="RUN", parser=find_run, show_default=False
        ),
    ],
    form: ReportFormatFlags,
    arrangement: ArrangementFlags,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the combined run; must be new or empty.",
            metavar="FOLDER",
            show_default=False,
        ),
    ],
) -> None:
    """Combine runs of different cases, for example from several machines, into one run and show its report.

    All of them must have the same targets, engine, margin and rounds. Each case
    was measured on one machine, so no ratio compares two machines.

    [bold]Examples[/bold]

      tfcompare merge shard-1 shard-2 --output whole

      tfcompare merge artifacts/* --output whole --format html
    """
    from orchestrator.cli.show import choose_report
    from orchestrator.results.merge import merge_runs as merge_runs

    disable_garbage_collection()
    how = choose_report(form.format, arrangement)
    run = merge_runs(runs, output, redact.redact_words(sys.argv[1:]))
    say(f"run folder: {run.path}")
    raise_broken(how.report(run.path, None).broken)


def list_runs(folder: Path, format: str) -> None:
    """Print the runs in a folder, the newest first."""
    from orchestrator.cli.list import Listing, print_listing
    from orchestrator.results.find_runs import describe_runs

    if format not in FORMATS:
        raise UsageError(f"{folder} contains several runs: name one, or take --format {' or '.join(FORMATS)}")
    runs = describe_runs(folder)
    listing = Listing(
        ("run", "begun", "versions", "cases"),
        [
            (str(run.path), run.created, ", ".join(run.targets), str(run.cases))
            if run.targets
            else (str(run.path), "", "its plan.json cannot be read", "")
            for run in runs
        ],
        [
            {"path": str(run.path), "created": run.created, "versions": list(run.targets), "cases": run.cases}
            for run in runs
        ],
    )
    print_listing(listing, format)


def show_profile(profiled: "ProfileResult", format: str) -> None:
    from orchestrator.profiling import report as profile_report

    if format == "json":
        print(strict_json.dump(profile_report.profile_as_object(profiled), indent=2))
    else:
        print_table(lambda width: profile_report.layout_profile(profiled, width))


def disable_garbage_collection() -> None:
    """Turn off garbage collection.

    A command that reads runs ends within seconds. Among the rows of a large run, searching for garbage takes a quarter
    of that time.
    """
    gc.disable()


def raise_broken(broken: tuple[str, ...]) -> None:
    """Raise an error for anything that could not be read.

    Everything that could be read has been shown by then; the exit code reports the rest.
    """
    if broken:
        raise ContractBroken("\n".join(broken))
