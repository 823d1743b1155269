"""The flags that several commands share, and the engine options that result from them."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from orchestrator.cli import parse
from orchestrator.engines import ENGINES
from orchestrator.errors import UsageError
from orchestrator.model import GpuRequest as GpuRequestName
from orchestrator.options import EngineOptions

INDEX_VARIABLE = "TFCOMPARE_INDEX_URL"

EngineName = Annotated[str, typer.Option("--engine", help=f"auto, {' or '.join(ENGINES)}.")]
Gpu = Annotated[bool, typer.Option("--gpu", help="Measure on the GPU, through Docker's NVIDIA runtime.")]
GpuRequest = Annotated[
    str,
    typer.Option("--gpu-request", help="How the GPU is asked for: runtime (the runtime named nvidia), device or cdi."),
]
Gpus = Annotated[
    str | None, typer.Option("--gpus", help="GPUs to measure on, by index or UUID, e.g. 0,1; implies --gpu.")
]
GpuExclusive = Annotated[
    bool,
    typer.Option(
        "--gpu-exclusive", help="One process at a time on the GPU: versions in turn, a container a replicate."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Measure versions that are known to fail on this GPU all the same.")
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base", envvar="TFCOMPARE_BASE", help="Base image in place of the pinned one; {python} becomes e.g. 3.7."
    ),
]
CaBundle = Annotated[
    Path | None,
    typer.Option("--ca-bundle", envvar="TFCOMPARE_CA_BUNDLE", help="Certificates to trust while installing."),
]
IndexUrl = Annotated[
    str | None,
    typer.Option(
        "--index-url",
        envvar=INDEX_VARIABLE,
        help="Package index to install from, in place of the usual one; a login in it stays out of images and logs.",
        metavar="URL",
    ),
]
Wheelhouse = Annotated[
    Path | None,
    typer.Option(
        "--wheelhouse",
        envvar="TFCOMPARE_WHEELHOUSE",
        help="Folder of wheels to install from; without --index-url from nothing else.",
        metavar="DIR",
    ),
]
NoPythonDownloads = Annotated[
    bool,
    typer.Option(
        "--no-python-downloads",
        help="Never download a Python that this machine lacks; UV_PYTHON_DOWNLOADS=never does the same.",
    ),
]
Cpuset = Annotated[str | None, typer.Option("--cpuset", help="CPUs that every version runs on, e.g. 0,2-3.")]
Memory = Annotated[str | None, typer.Option("--memory", help="Memory that every version may use, e.g. 4g.")]
Threads = Annotated[str | None, typer.Option("--threads", help="TensorFlow's threads for every version: inter,intra.")]
Timeout = Annotated[str, typer.Option("--timeout", help="Longest that one step of a case may take.")]
SuiteName = Annotated[
    str | None,
    typer.Option(
        "--suite",
        help="Suite of cases: smoke, quick, seed or full. Default: quick, or all of --workloads.",
        show_default=False,
    ),
]
OwnWorkloads = Annotated[
    Path | None,
    typer.Option(
        "--workloads",
        help="Folder with workload files of your own. All are measured unless --workload or --suite is given.",
        metavar="DIR",
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="Run directory; runs/<stamp> if not given.")]
Rounds = Annotated[int | None, typer.Option("--rounds", min=2, max=1000, help="Exactly so many rounds.")]
Budget = Annotated[str | None, typer.Option("--budget", help="Time for the measuring, e.g. 90s or 10m.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of orders and data; random if not given."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show builds and installs as they go.")]

History = Annotated[
    Path | None,
    typer.Option(
        "--history",
        envvar="TFCOMPARE_HISTORY",
        help="Folder of the history; one of your own among your data if not given.",
        metavar="DIR",
        show_default=False,
    ),
]
Notify = Annotated[
    list[str] | None,
    typer.Option(
        "--notify",
        help="Whom to tell, as an apprise URL; ${NAME} in it is taken from the environment; repeatable.",
        metavar="URL",
    ),
]
NotifyFile = Annotated[
    Path | None,
    typer.Option("--notify-file", help="A file of such URLs, one a line.", metavar="FILE"),
]

Format = Annotated[str, typer.Option("--format", help="table or json, on stdout.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", help="Columns of the table, e.g. time,ratio,verdict; +build,first adds to the usual ones."
    ),
]
Only = Annotated[str | None, typer.Option("--only", help="Show only what is e.g. slower, or slower,faster,died.")]
Sort = Annotated[str | None, typer.Option("--sort", help="Order of cases: case, name, ratio or time; -ratio turns it.")]
FailOn = Annotated[str | None, typer.Option("--fail-on", help="slower: exit with 1 if something is.")]


def known_fail_on(text: str | None) -> None:
    if text not in (None, "slower"):
        raise UsageError(f"--fail-on {text!r}: only slower is known")


def environments(
    gpu: bool,
    gpu_request: str,
    base: str | None,
    ca_bundle: Path | None,
    cpuset: str | None,
    memory: str | None,
    index_url: str | None = None,
    wheelhouse: Path | None = None,
    *,
    no_python_downloads: bool = False,
) -> EngineOptions:
    if gpu_request not in get_args(GpuRequestName):
        raise UsageError(f"--gpu-request {gpu_request!r}: it is runtime, device or cdi")
    return EngineOptions(
        gpu=gpu,
        gpu_request=cast(GpuRequestName, gpu_request),
        base=base,
        ca_bundle=ca_bundle,
        index_url=index_url,
        wheelhouse=wheelhouse,
        python_downloads=not no_python_downloads,
        cpus=parse.cpus(cpuset) if cpuset else None,
        memory_mb=parse.memory_mb(memory) if memory else None,
    )


def on_gpus(places: EngineOptions, gpus: str | None, *, exclusive: bool = False, force: bool = False) -> EngineOptions:
    """Return the engine options with the flags about GPUs added.

    Naming a GPU, or how to hold it, implies --gpu.
    """
    named = parse.names(gpus) if gpus is not None else ()
    if gpus is not None and not named:
        raise UsageError(f"--gpus {gpus!r}: indices or UUIDs, e.g. 0,1; `nvidia-smi -L` lists them")
    gpu = places.gpu or bool(named) or exclusive
    if force and not gpu:
        raise UsageError("--force is about versions that fail on a GPU: it goes with --gpu")
    return replace(places, gpu=gpu, gpus=named, exclusive=exclusive, force=force)
