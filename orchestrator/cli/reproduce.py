"""`tfcompare reproduce`: tests claims by measuring."""

import sys
from typing import Annotated

import typer

from orchestrator import redact
from orchestrator.cli.list import list_claims, print_listing
from orchestrator.cli.options import (
    FORMATS,
    ArrangementFlags,
    FailOnFlags,
    FleetFlags,
    InstallationFlags,
    MachineFlags,
    MeasuringFlags,
    MeasuringGpuFlags,
    ReportFormatFlags,
    RunFolderFlags,
    SelectionFlags,
    VerbosityFlags,
    run_options,
    with_options,
)
from orchestrator.cli.run import run_and_show
from orchestrator.errors import UsageError

app = typer.Typer()

# These are the names in catalog/claims.py, which is slow to import; a test keeps them equal.
SUITES = ("studies", "reported", "full")


@app.command()
@with_options
def reproduce(
    measuring: MeasuringFlags,
    machine: MachineFlags,
    gpu: MeasuringGpuFlags,
    installation: InstallationFlags,
    machines: FleetFlags,
    folder: RunFolderFlags,
    report: ReportFormatFlags,
    verbosity: VerbosityFlags,
    claim: Annotated[list[str] | None, typer.Argument(help="Claims to test. Default: all.", metavar="CLAIM")] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the claims and measure nothing.")] = False,
    suite: Annotated[
        str | None,
        typer.Option(
            help="Suite of claims: studies (the published studies that tfcompare began with), reported (single "
            "reports, such as GitHub issues) or full (claims that take long to test). Default: all.",
            rich_help_panel=SelectionFlags.panel,
            metavar="SUITE",
        ),
    ] = None,
) -> None:
    """Test published claims about TensorFlow and report whether each is reproduced.

    [bold]Examples[/bold]

      tfcompare reproduce --list

      tfcompare reproduce predict-after-compile

      tfcompare reproduce --suite studies --format json > claims.json
    """
    if list_them and report.format not in FORMATS:
        raise UsageError(f"--list goes with --format {' or '.join(FORMATS)}")
    from orchestrator.catalog import claims
    from orchestrator.catalog import workloads as suites

    chosen = claims.choose_claims(claim or (), suite, claims.all_claims(suites.all_workloads()))
    if list_them:
        print_listing(list_claims(chosen), report.format)
        return
    options = run_options(
        machine,
        gpu,
        installation,
        measuring.budget,
        claims=chosen,
        suite=suite or "claims",
        out=folder.output,
        rounds=measuring.rounds,
        seed=measuring.seed,
        command=redact.redact_words(sys.argv[1:]),
    )
    run_and_show(
        options,
        report,
        ArrangementFlags(),
        FailOnFlags(),
        verbosity,
        dry_run=measuring.dry_run,
        fleet=machines.fleet_options,
    )
