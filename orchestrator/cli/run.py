"""The commands that measure: `tfcompare run | reproduce | profile`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator import redact
from orchestrator.cli import help, parse
from orchestrator.cli.options import (
    Base,
    Budget,
    CaBundle,
    Columns,
    Cpuset,
    DryRun,
    EngineName,
    FailOn,
    Force,
    Format,
    Gpu,
    GpuExclusive,
    GpuRequest,
    Gpus,
    IndexUrl,
    Memory,
    NoPythonDownloads,
    Only,
    Out,
    OwnWorkloads,
    Quiet,
    Rounds,
    Seed,
    Sort,
    SuiteName,
    Threads,
    Timeout,
    Verbose,
    Wheelhouse,
    environments,
    known_fail_on,
    on_gpus,
)
from orchestrator.cli.show import Shown, shown
from orchestrator.errors import FoundSlower, UsageError
from orchestrator.measure.conduct import Done
from orchestrator.measure.resume import MoreOptions, more_rounds
from orchestrator.measure.run import forecast
from orchestrator.measure.run import run as run_comparison
from orchestrator.plan.request import RunOptions
from orchestrator.reports.next_step import next_line
from orchestrator.terminal.progress import view
from orchestrator.terminal.text import lines, plain

# What else stands in the plan of the run that --more continues.
WITH_MORE = {
    "more", "rounds", "budget", "workloads", "base", "ca_bundle", "index_url", "wheelhouse", "no_python_downloads",
    "gpu_request", "format", "columns", "only", "sort", "fail_on", "quiet", "verbose",
}  # fmt: skip

app = typer.Typer()


@app.command(help=help.RUN)
def run(
    context: typer.Context,
    versions: Annotated[
        str | None,
        typer.Option(help="Versions to compare, the baseline first, e.g. 1.14,2.0,2.13.", show_default=False),
    ] = None,
    more: Annotated[
        Path | None, typer.Option(help="Go on with this run, for the cases that have no verdict yet.", metavar="RUN")
    ] = None,
    suite: SuiteName = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Cases to run instead of the whole suite: name\\[param=value,...]; repeatable."),
    ] = None,
    workloads: OwnWorkloads = None,
    engine: EngineName = "auto",
    isolation: Annotated[
        str,
        typer.Option(help="What a replicate is: a fork of a resident worker, or a process or container of its own."),
    ] = "fork",
    gpu: Gpu = False,
    gpus: Gpus = None,
    gpu_request: GpuRequest = "runtime",
    gpu_exclusive: GpuExclusive = False,
    force: Force = False,
    base: Base = None,
    ca_bundle: CaBundle = None,
    index_url: IndexUrl = None,
    wheelhouse: Wheelhouse = None,
    no_python_downloads: NoPythonDownloads = False,
    out: Out = None,
    rounds: Rounds = None,
    budget: Budget = None,
    margin: Annotated[float, typer.Option(help="What counts as a difference, in percent.")] = 5.0,
    control: Annotated[
        bool, typer.Option("--control", help="Measure the baseline twice: its two arms must come out the same.")
    ] = False,
    threads: Threads = None,
    cpuset: Cpuset = None,
    memory: Memory = None,
    timeout: Timeout = "10m",
    seed: Seed = None,
    format: Format = "table",
    columns: Columns = None,
    only: Only = None,
    sort: Sort = None,
    fail_on: FailOn = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    known_fail_on(fail_on)
    how = shown(format, columns=columns, only=only, sort=sort)
    places = environments(
        gpu, gpu_request, base, ca_bundle, cpuset, memory, index_url, wheelhouse,
        no_python_downloads=no_python_downloads,
    )  # fmt: skip
    places = on_gpus(places, gpus, exclusive=gpu_exclusive, force=force)
    budget_s = parse.seconds("--budget", budget) if budget else None
    if more:
        _only_with_more(context)
        asked = MoreOptions(
            run=more,
            rounds=rounds,
            budget_s=budget_s,
            own_workloads=workloads,
            environments=places,
            command=redact.recorded(sys.argv[1:]),
        )
        with view(Console(stderr=True), quiet=quiet, verbose=verbose) as watching:
            done = more_rounds(asked, watching)
        _finish(done, how, fail_on, quiet)
        return
    if versions is None:
        raise UsageError("--versions is missing: name them, the baseline first, e.g. --versions 1.14,2.0,2.13")
    options = RunOptions(
        versions=parse.names(versions),
        suite=suite,
        selected=tuple(workload or ()),
        own_workloads=workloads,
        engine=engine,
        environments=places,
        out=out,
        rounds=rounds,
        budget_s=budget_s,
        margin=parse.margin(margin),
        control=control,
        threads=parse.threads(threads) if threads else None,
        timeout_s=parse.seconds("--timeout", timeout),
        seed=seed,
        isolation=parse.isolation(isolation),
        command=redact.recorded(sys.argv[1:]),
    )
    run_and_show(options, how, fail_on, dry_run=dry_run, quiet=quiet, verbose=verbose)


def run_and_show(
    options: RunOptions, how: Shown, fail_on: str | None, *, dry_run: bool, quiet: bool, verbose: bool
) -> None:
    errors = Console(stderr=True)
    if dry_run:
        say = (lambda text: None) if quiet else (lambda text: errors.print(lines(text), soft_wrap=True))
        print("\n".join(forecast(options, say)))
        return
    with view(errors, quiet=quiet, verbose=verbose) as watching:
        done = run_comparison(options, watching)
    _finish(done, how, fail_on, quiet)


def _only_with_more(context: typer.Context) -> None:
    """Raise UsageError for options that cannot go with --more.

    Everything except how long to continue was fixed when the run began.
    """
    given = [
        name
        for name in context.params
        if name not in WITH_MORE and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        told = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UsageError(f"--more goes on with a run as it was planned: leave {told} out, or run anew")


def _finish(done: Done, how: Shown, fail_on: str | None, quiet: bool) -> None:
    """Print a run's comparison and raise the error that determines the exit code.

    The last line is the command that continues the run.
    """
    errors = Console(stderr=True)
    try:
        how.show(done.comparison, done.path)
    finally:
        # Also where stdout cannot be written: the run is kept.
        if not quiet:
            errors.print(plain(f"run directory: {done.path}"), soft_wrap=True)
    following = "" if quiet else next_line(done.path, done.comparison)
    error = done.error
    if error is None and fail_on == "slower" and done.comparison.slower:
        error = FoundSlower(f"{len(done.comparison.slower)} contrasts are slower (--fail-on slower)")
    if error:
        raise type(error)(f"{error}\n{following}") if following else error
    if following:
        errors.print(plain(following), soft_wrap=True)
