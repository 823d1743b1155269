"""`tfcompare doctor`: what this machine can run, and how noisy it is."""

import json
from typing import Annotated

import typer
from rich.console import Console

from orchestrator import catalog
from orchestrator.catalog.lock_on_demand import provide
from orchestrator.cli import help, parse
from orchestrator.cli.options import Base, Format, Gpu, NoPythonDownloads
from orchestrator.doctor import environment, noise
from orchestrator.doctor.report import as_object, layout
from orchestrator.errors import EnvironmentFailed
from orchestrator.options import EngineOptions
from orchestrator.terminal.text import draw, plain

app = typer.Typer()


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
