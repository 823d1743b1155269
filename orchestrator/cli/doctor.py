"""`tfcompare doctor`: what this machine can run, and how noisy it is."""

from typing import Annotated

import typer

from orchestrator.cli import parse
from orchestrator.cli.options import BaseFlags, DownloadsFlags, FormatFlags, OnGpuFlags, with_options
from orchestrator.cli.talk import PrintingView, say
from orchestrator.errors import EnvironmentFailed
from orchestrator.options import EngineOptions
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table

app = typer.Typer()


@app.command("doctor")
@with_options
def examine_machine(
    gpu: OnGpuFlags,
    base: BaseFlags,
    downloads: DownloadsFlags,
    output: FormatFlags,
    versions: Annotated[
        str,
        typer.Option(
            help="Versions that should run here (with --gpu: on the GPU). The exit code is 0 only if all of them can.",
            metavar="VERSIONS",
        ),
    ] = "1.14,2.0,2.13",
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Measure how noisy this machine is.", show_default=False)
    ] = True,
    duration: Annotated[str, typer.Option(help="How long to measure noise.", metavar="DURATION")] = "30s",
    cpuset: Annotated[str | None, typer.Option(help="CPUs to measure noise on, e.g. 0,2-3.", metavar="CPUS")] = None,
) -> None:
    """Report what this machine can run, how noisy it is right now, and what to do about each finding.

    [bold]Examples[/bold]

      tfcompare doctor

      tfcompare doctor --versions 1.14,2.0..2.4 --no-probe

      tfcompare doctor --versions 2.13 --gpu --no-probe

      tfcompare doctor --cpuset 2-3 --format json
    """
    seconds = parse.seconds("--duration", duration)
    cpus = parse.cpus(cpuset) if cpuset else None
    from orchestrator import catalog
    from orchestrator.catalog.lock_on_demand import provide_locks

    options = EngineOptions(gpu=gpu.gpu, base=base.base, python_downloads=not downloads.no_python_downloads)
    names = provide_locks(parse.parse_names(versions), PrintingView(), device=options.device)
    versions_here = catalog.resolve_versions(names, fewest=1)
    from orchestrator.doctor import environment, noise
    from orchestrator.doctor.report import examination_as_object, layout_examination

    setup = environment.examine_setup(versions_here, options)
    examination = None
    if probe:
        say(f"probing this machine for {seconds:.0f} s")
        examination = noise.examine_noise(seconds, cpus)
    if output.format == "json":
        print(strict_json.dump(examination_as_object(examination, setup), indent=2))
    else:
        print_table(lambda width: layout_examination(examination, width, setup))
    if setup.unable:
        raise EnvironmentFailed(f"cannot run here: {', '.join(setup.unable)}; the findings above say what to do")
