"""The `tfcompare bisect` command: reads the flags, measures the steps, and prints the answer."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.bisect import estimate, report, run
from orchestrator.bisect.quiet_view import Once
from orchestrator.bisect.state import Question, State
from orchestrator.cli import help, parse
from orchestrator.cli.options import (
    Base,
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
    Memory,
    NoPythonDownloads,
    OwnWorkloads,
    Quiet,
    Rounds,
    Seed,
    Threads,
    Timeout,
    Verbose,
    environments,
    on_gpus,
)
from orchestrator.errors import UsageError
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.progress import View, view
from orchestrator.terminal.text import draw, lines, plain

# What may stand beside --resume: everything else was fixed when the search began.
WITH_RESUME = {"resume", "steps", "format", "quiet", "verbose", "dry_run"}

app = typer.Typer()


@app.command(help=help.BISECT)
def bisect(
    context: typer.Context,
    good: Annotated[
        str | None, typer.Option(help="The older end: a version, or nightly-YYYYMMDD.", show_default=False)
    ] = None,
    bad: Annotated[str | None, typer.Option(help="The newer end.", show_default=False)] = None,
    workload: Annotated[
        str | None, typer.Option(help="The one case: name\\[param=value,...].", show_default=False)
    ] = None,
    nightlies: Annotated[
        bool, typer.Option("--nightlies", help="Go on between two releases, with the nightlies that the index has.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Visit every version, also where the ends of an interval do not differ.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the search in this folder.", metavar="DIR", show_default=False)
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="At most so many steps now, the largest change first.", show_default=False)
    ] = None,
    workloads: OwnWorkloads = None,
    engine: EngineName = "auto",
    gpu: Gpu = False,
    gpus: Gpus = None,
    gpu_request: GpuRequest = "runtime",
    gpu_exclusive: GpuExclusive = False,
    force: Force = False,
    base: Base = None,
    ca_bundle: CaBundle = None,
    no_python_downloads: NoPythonDownloads = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the search; one that holds it already goes on.", show_default=False)
    ] = None,
    rounds: Rounds = None,
    budget: Annotated[
        str | None, typer.Option(help="Time for the measuring of each step; 10m if not given.", show_default=False)
    ] = None,
    margin: Annotated[float, typer.Option(help="What counts as a difference, in percent.")] = 5.0,
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
    parse.known_format(format)
    if resume:
        _only_with_resume(context)
        question = None
    else:
        missing = [name for name, value in (("good", good), ("bad", bad), ("workload", workload)) if not value]
        if missing:
            told = ", ".join(f"--{name}" for name in missing)
            raise UsageError(
                f"{told} missing: a search needs two versions and one case, e.g. --good 1.14 --bad 2.13 "
                "--workload 'predict[call=predict,state=uncompiled,model=tiny]'"
            )
        assert good
        assert bad
        assert workload
        places = environments(
            gpu, gpu_request, base, ca_bundle, cpuset, memory, no_python_downloads=no_python_downloads
        )
        question = Question(
            good=good,
            bad=bad,
            nightlies=nightlies,
            every=every,
            run=RunOptions(
                selected=(workload,),
                own_workloads=workloads,
                engine=engine,
                environments=on_gpus(places, gpus, exclusive=gpu_exclusive, force=force),
                rounds=rounds,
                budget_s=parse.seconds("--budget", budget) if budget else None,
                margin=parse.margin(margin),
                threads=parse.threads(threads) if threads else None,
                timeout_s=parse.seconds("--timeout", timeout),
                seed=seed,
            ),
        )
    errors = Console(stderr=True)
    with view(errors, quiet=quiet, verbose=verbose) as live:
        watching = Once(live)
        folder, known = _begun(question, resume, out, watching)
        plan = estimate.lines(known, watching) if known.found.wanted else []
        if dry_run:
            print("\n".join(plan))
            return
        for line in plan:
            watching.say(line)
        done = run.bisect(folder, known, watching, steps)
    _show(done, format, errors, quiet)


def _begun(question: Question | None, resume: Path | None, out: Path | None, watching: View) -> tuple[Path, State]:
    if question is None:
        assert resume is not None
        folder, known = resume, run.again(resume)
    else:
        folder, known = run.begin(question, out, watching)
    if known.steps:
        watching.say(f"{folder}: {len(known.measured)} steps are done already, and are not measured again")
    return folder, known


def _show(done: run.Bisected, format: str, errors: Console, quiet: bool) -> None:
    if format == "json":
        print(json.dumps(report.as_object(done.state, done.found), indent=2))
    else:
        draw(lambda width: report.layout(done.state, done.found, width))
    # What draws plots takes a second to import.
    from orchestrator.bisect import page

    written = page.write(done.state, done.found, done.path)
    if not quiet:
        errors.print(plain(f"plot: {written}"), soft_wrap=True)
        if done.found.wanted:
            errors.print(lines(f"more can be told: tfcompare bisect --resume {done.path}"), soft_wrap=True)
    if done.error:
        raise done.error


def _only_with_resume(context: typer.Context) -> None:
    given = [
        name
        for name in context.params
        if name not in WITH_RESUME and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        told = ", ".join("--" + {"every": "all"}.get(name, name).replace("_", "-") for name in given)
        raise UsageError(f"--resume goes on with a search as it was asked: leave {told} out, or begin anew")
