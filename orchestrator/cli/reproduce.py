"""`tfcompare reproduce`: claims are measured."""

import sys
from typing import Annotated

import typer

from orchestrator import redact
from orchestrator.catalog import claims
from orchestrator.catalog import workloads as suites
from orchestrator.cli import help, parse
from orchestrator.cli.list import draw_listing, list_claims
from orchestrator.cli.options import (
    Base,
    Budget,
    CaBundle,
    Cpuset,
    DryRun,
    EngineName,
    Force,
    Format,
    Gpu,
    GpuExclusive,
    GpuRequest,
    Gpus,
    IndexUrl,
    Memory,
    NoPythonDownloads,
    Out,
    Quiet,
    Rounds,
    Seed,
    Threads,
    Timeout,
    Verbose,
    Wheelhouse,
    environments,
    on_gpus,
)
from orchestrator.cli.run import run_and_show
from orchestrator.cli.show import shown
from orchestrator.plan.request import RunOptions

app = typer.Typer()


@app.command(help=help.REPRODUCE)
def reproduce(
    claim: Annotated[list[str] | None, typer.Argument(help="Claims to test; all if none is named.")] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Show the claims there are, and measure nothing.")] = False,
    suite: Annotated[
        str | None, typer.Option(help="seed: the claims of the first studies; reported: those of single reports.")
    ] = None,
    engine: EngineName = "auto",
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
    threads: Threads = None,
    cpuset: Cpuset = None,
    memory: Memory = None,
    timeout: Timeout = "10m",
    seed: Seed = None,
    format: Format = "table",
    dry_run: DryRun = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    how = shown(format)
    chosen = claims.choose(claim or (), suite, claims.all_claims(suites.all_workloads()))
    if list_them:
        draw_listing(list_claims(chosen), format)
        return
    places = environments(
        gpu, gpu_request, base, ca_bundle, cpuset, memory, index_url, wheelhouse,
        no_python_downloads=no_python_downloads,
    )  # fmt: skip
    places = on_gpus(places, gpus, exclusive=gpu_exclusive, force=force)
    options = RunOptions(
        claims=chosen,
        suite=suite or "claims",
        engine=engine,
        environments=places,
        out=out,
        rounds=rounds,
        budget_s=parse.seconds("--budget", budget) if budget else None,
        threads=parse.threads(threads) if threads else None,
        timeout_s=parse.seconds("--timeout", timeout),
        seed=seed,
        command=redact.recorded(sys.argv[1:]),
    )
    run_and_show(options, how, None, dry_run=dry_run, quiet=quiet, verbose=verbose)
