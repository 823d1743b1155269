"""`tfcompare profile`: where the time of a call goes."""

import sys
from typing import Annotated

import typer

from orchestrator import redact
from orchestrator.cli import parse
from orchestrator.cli.options import (
    FormatFlags,
    GpuFlags,
    InstallationFlags,
    MachineFlags,
    RunFolderFlags,
    SeedFlags,
    SelectionFlags,
    VerbosityFlags,
    number,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.cli.report import show_profile
from orchestrator.options import PROFILED_CALLS, SHOWN_FUNCTIONS

app = typer.Typer()


@app.command("profile")
@with_options
def profile_cases(
    versions: Annotated[
        str,
        typer.Option(help="Versions to profile, the baseline first; one is enough.", metavar="VERSIONS"),
    ],
    selection: SelectionFlags,
    seed: SeedFlags,
    machine: MachineFlags,
    gpu: GpuFlags,
    installation: InstallationFlags,
    folder: RunFolderFlags,
    report: FormatFlags,
    verbosity: VerbosityFlags,
    calls: Annotated[
        int, number("--calls", 1, 100_000, "Number of calls to profile.", rich_help_panel=SeedFlags.panel)
    ] = PROFILED_CALLS,
    explain_output: Annotated[
        bool,
        typer.Option(
            "--explain-output",
            help="Instead of profiling, name the first Keras layer whose results differ between versions.",
            rich_help_panel=SeedFlags.panel,
        ),
    ] = False,
    top: Annotated[
        int, number("--top", 1, 100_000, "Number of functions to show.", rich_help_panel=FormatFlags.panel)
    ] = SHOWN_FUNCTIONS,
) -> None:
    r"""Show where the time of a case goes in each version: which functions are new or take longer.

    [bold]Examples[/bold]

      tfcompare profile --versions 1.14,2.0 --case 'predict\[state=compiled,model=tiny,call=predict]'

      tfcompare profile --versions 2.13,2.16 --case train_loop --explain-output

      tfcompare profile --versions 2.13 --case 'power\[style=eager]' --calls 50 --output runs/where
    """
    options = run_options(
        machine,
        gpu,
        installation,
        versions=parse.parse_names(versions),
        suite=selection.suite,
        selected=tuple(selection.case or ()),
        own_workloads=selection.workload_folder,
        outside=selection.find_allowed(selection.workload_folder),
        hash_data=selection.hash_data,
        out=folder.output,
        seed=seed.seed,
        command=redact.redact_words(sys.argv[1:]),
    )
    parse.check_versions(options.versions)
    say_ignored(options.environments, verbosity.view)
    from orchestrator.profiling.run import ProfileOptions, profile

    with verbosity.watch() as watching:
        asked = ProfileOptions(run=options, calls=0 if explain_output else calls, top=top)
        profiled = profile(asked, watching)
    show_profile(profiled, report.format)
    what = "outputs of each layer" if explain_output else "profiles and flame graphs"
    verbosity.say(f"{what}: {profiled.path}")
    if profiled.error:
        raise profiled.error
