"""The commands that measure nothing: they show, compare and export runs, and list what is available."""

import gc
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator import catalog
from orchestrator.catalog.lock_on_demand import provide
from orchestrator.cli import help, parse
from orchestrator.cli.listing import draw_listing, find_listing
from orchestrator.cli.options import Base, Columns, FailOn, Format, Gpu, NoPythonDownloads, Only, Sort, known_fail_on
from orchestrator.cli.show import shown
from orchestrator.doctor import environment, noise
from orchestrator.doctor.report import as_object, layout
from orchestrator.errors import ContractBroken, EnvironmentFailed, FoundSlower
from orchestrator.options import EngineOptions
from orchestrator.profiling import report as profile_report
from orchestrator.profiling.model import Profiled
from orchestrator.profiling.run import PROFILE_FILE
from orchestrator.profiling.run import read as read_profile
from orchestrator.reports import changes as changes_report
from orchestrator.results.compare_runs import compare_runs
from orchestrator.results.run import load_run
from orchestrator.terminal.text import draw, plain

app = typer.Typer()

TO = "csv, parquet, json, markdown, junit, pyperf, bencher, github-benchmark, asv or openmetrics."

RunDirectory = Annotated[Path, typer.Argument(help="A run directory.", metavar="RUN", show_default=False)]
Output = Annotated[str | None, typer.Option("--output", help="A file, or - for stdout.", show_default=False)]


@app.command(help=help.REPORT)
def report(
    run: RunDirectory,
    format: Annotated[str, typer.Option(help="table, json, or html (written to RUN/report.html).")] = "table",
    table: Annotated[
        str | None,
        typer.Option(help="verdicts; trend: a line a version; seed: training loops as the study prints them; claims."),
    ] = None,
    columns: Columns = None,
    only: Only = None,
    sort: Sort = None,
    output: Output = None,
) -> None:
    _keep_garbage()
    how = shown(format, table, columns, only, sort)
    if (run / PROFILE_FILE).exists():
        parse.known_format(format)
        show_profile(read_profile(run), format)
        return
    _believe(how.report(run, output).broken)


@app.command(help=help.COMPARE)
def compare(
    earlier: Annotated[Path, typer.Argument(help="A run directory.", metavar="EARLIER", show_default=False)],
    later: Annotated[
        Path, typer.Argument(help="A run directory of the same cases.", metavar="LATER", show_default=False)
    ],
    format: Format = "table",
    fail_on: FailOn = None,
) -> None:
    _keep_garbage()
    parse.known_format(format)
    known_fail_on(fail_on)
    found = compare_runs(earlier, later)
    if format == "json":
        print(json.dumps(changes_report.as_object(found), indent=2))
    else:
        draw(lambda width: changes_report.layout(found, width))
    _believe(found.broken)
    if fail_on == "slower" and found.slower:
        raise FoundSlower(f"{len(found.slower)} ratios are slower than they were (--fail-on slower)")


@app.command(help=help.EXPORT)
def export(
    run: RunDirectory,
    to: Annotated[str, typer.Option(help=TO, show_default=False)],
    table: Annotated[
        str | None, typer.Option(help="What csv and parquet hold: arms, contrasts, replicates or calls.")
    ] = None,
    output: Output = None,
) -> None:
    # The other commands need none of what writes these formats.
    from orchestrator import exports

    path = None if output in (None, "-") else Path(output)
    exports.check(to, table, path)
    _keep_garbage()
    loaded = load_run(run)
    made = exports.export(loaded, to, table, path)
    if made.text is not None:
        print(made.text)
    for path in made.files:
        Console(stderr=True).print(plain(f"written: {path}"), soft_wrap=True)
    _believe(loaded.comparison.broken)


@app.command("doctor", help=help.DOCTOR)
def examine_machine(
    versions: Annotated[
        str, typer.Option(help="Versions that should run here; the exit code is 0 only when all of them can.")
    ] = "1.14,2.0,2.13",
    gpu: Gpu = False,
    base: Base = None,
    no_python_downloads: NoPythonDownloads = False,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Measure how noisy this machine is.", show_default=False)
    ] = True,
    duration: Annotated[str, typer.Option(help="How long to probe.")] = "30s",
    cpuset: Annotated[str | None, typer.Option(help="CPUs that the probe runs on, e.g. 0,2-3.")] = None,
    format: Format = "table",
) -> None:
    parse.known_format(format)
    seconds = parse.seconds("--duration", duration)
    cpus = parse.cpus(cpuset) if cpuset else None
    say = Console(stderr=True)
    names = provide(parse.names(versions), lambda text: say.print(plain(text), soft_wrap=True))
    options = EngineOptions(gpu=gpu, base=base, python_downloads=not no_python_downloads)
    found = environment.look(catalog.resolve(names, fewest=1), options)
    examination = None
    if probe:
        say.print(plain(f"probing this machine for {seconds:.0f} s"), soft_wrap=True)
        examination = noise.examine(seconds, cpus)
    if format == "json":
        print(json.dumps(as_object(examination, found), indent=2))
    else:
        draw(lambda width: layout(examination, width, found))
    if found.unable:
        raise EnvironmentFailed(f"cannot run here: {', '.join(found.unable)}; what to do stands beside each")


@app.command("list", help=help.LIST)
def list_things(
    what: Annotated[str, typer.Argument(help="versions, workloads, suites or claims.")],
    format: Format = "table",
) -> None:
    parse.known_format(format)
    draw_listing(find_listing(what), format)


def show_profile(found: Profiled, format: str) -> None:
    if format == "json":
        print(json.dumps(profile_report.as_object(found), indent=2))
    else:
        draw(lambda width: profile_report.layout(found, width))


def _keep_garbage() -> None:
    """Turn off garbage collection.

    A command that reads runs ends within seconds. Among the rows of a large run, searching for garbage takes a quarter
    of that time.
    """
    gc.disable()


def _believe(broken: tuple[str, ...]) -> None:
    """Raise an error for anything that could not be read.

    Everything that could be read has been shown by then; the exit code reports the rest.
    """
    if broken:
        raise ContractBroken("\n".join(broken))
