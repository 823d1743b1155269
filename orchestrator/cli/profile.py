"""`tfcompare profile`: where the time of a call goes."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from orchestrator import redact
from orchestrator.cli import help, parse
from orchestrator.cli.options import (
    Base,
    CaBundle,
    Cpuset,
    EngineName,
    Force,
    Format,
    Gpu,
    GpuRequest,
    Gpus,
    IndexUrl,
    Memory,
    NoPythonDownloads,
    Out,
    OwnWorkloads,
    Quiet,
    Seed,
    SuiteName,
    Threads,
    Timeout,
    Verbose,
    Wheelhouse,
    environments,
    on_gpus,
)
from orchestrator.cli.report import show_profile
from orchestrator.plan.request import RunOptions
from orchestrator.profiling.run import CALLS, TOP, ProfileOptions, profile
from orchestrator.terminal.progress import view
from orchestrator.terminal.text import plain

app = typer.Typer()


@app.command("profile", help=help.PROFILE)
def profile_cases(
    versions: Annotated[str, typer.Option(help="Versions to profile, the first is the baseline; one is enough.")],
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Cases to profile: name\\[param=value,...]; repeatable; the suite's if none is named."),
    ] = None,
    suite: SuiteName = None,
    workloads: OwnWorkloads = None,
    engine: EngineName = "auto",
    gpu: Gpu = False,
    gpus: Gpus = None,
    gpu_request: GpuRequest = "runtime",
    force: Force = False,
    base: Base = None,
    ca_bundle: CaBundle = None,
    index_url: IndexUrl = None,
    wheelhouse: Wheelhouse = None,
    no_python_downloads: NoPythonDownloads = False,
    out: Out = None,
    calls: Annotated[int, typer.Option(help="How many calls are profiled.")] = CALLS,
    top: Annotated[int, typer.Option(min=1, help="How many functions are shown.")] = TOP,
    threads: Threads = None,
    cpuset: Cpuset = None,
    memory: Memory = None,
    timeout: Timeout = "10m",
    seed: Seed = None,
    format: Format = "table",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    parse.known_format(format)
    places = environments(
        gpu, gpu_request, base, ca_bundle, cpuset, memory, index_url, wheelhouse,
        no_python_downloads=no_python_downloads,
    )  # fmt: skip
    options = RunOptions(
        versions=parse.names(versions),
        suite=suite,
        selected=tuple(workload or ()),
        own_workloads=workloads,
        engine=engine,
        environments=on_gpus(places, gpus, force=force),
        out=out,
        threads=parse.threads(threads) if threads else None,
        timeout_s=parse.seconds("--timeout", timeout),
        seed=seed,
        command=redact.recorded(sys.argv[1:]),
    )
    errors = Console(stderr=True)
    with view(errors, quiet=quiet, verbose=verbose) as watching:
        found = profile(ProfileOptions(run=options, calls=calls, top=top), watching)
    show_profile(found, format)
    if not quiet:
        errors.print(plain(f"profiles and flame graphs: {found.path}"), soft_wrap=True)
    if found.error:
        raise found.error
