"""`tfcompare init` and `check`: create a workload from a template, and try it before it is measured."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator import files, redact
from orchestrator.bundled import WORKLOADS
from orchestrator.cli import parse
from orchestrator.cli.options import (
    DataFlags,
    FormatFlags,
    GpuFlags,
    InstallationFlags,
    MachineFlags,
    VerbosityFlags,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.errors import ArmsDied, UsageError
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import safe_text

if TYPE_CHECKING:
    from orchestrator.measure.trial import TriedArm

TEMPLATE, NAME = WORKLOADS / "template.txt", "training.py"
SCHEMA = "tfcompare.check/1"
ARM = (
    "workload=case.workload params=case.params target outcome build_s=build_ns first_s=first_ns second_s=second_ns "
    "steps output note"
)
app = typer.Typer()


@app.command("init")
@with_options
def init(
    folder: Annotated[Path, typer.Argument(help="Folder for the workload; it is created if needed.", metavar="FOLDER")],
) -> None:
    """Create a commented workload template in a folder.

    [bold]Examples[/bold]

      tfcompare init mine
    """
    path = folder / NAME
    if path.exists():
        raise UsageError(f"{path} exists already; name another folder")
    with files.writing(str(path), "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(TEMPLATE.read_text())
    quoted = shlex.quote(str(folder))
    print(f"{path}: put your code into it, then")
    print(f"  tfcompare check {shlex.quote(str(path))} 2.13 2.16    # does it run, and how long does a call take?")
    print(f"  tfcompare run --versions 2.13,2.16 --workload-folder {quoted}")


@app.command("check")
@with_options
def check(
    path: Annotated[Path, typer.Argument(help="The file of the workload.", metavar="FILE")],
    data: DataFlags,
    machine: MachineFlags,
    gpu: GpuFlags,
    installation: InstallationFlags,
    output: FormatFlags,
    verbosity: VerbosityFlags,
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="Targets to try it in. Default: the newest version.", metavar="TARGET", show_default=False),
    ] = None,
) -> None:
    r"""Try a workload: build each of its cases and call it twice, in one or more targets.

    [bold]Examples[/bold]

      tfcompare check mine/training.py

      tfcompare check mine/training.py 1.14 2.16 '2.16 keras=2'
    """
    if path.suffix != ".py" or not path.is_file():
        raise UsageError(f"{path}: name the file of a workload, such as mine/training.py; `tfcompare init` writes one")
    from orchestrator.catalog import targets as written

    named = written.split_targets(targets or ()) or ("latest",)
    parse.check_targets(named)
    options = run_options(
        machine,
        gpu,
        installation,
        versions=named,
        selected=(path.stem,),
        own_workloads=path.absolute().parent,
        outside=data.find_allowed(path.absolute().parent),
        command=redact.redact_words(sys.argv[1:]),
    )
    say_ignored(options.environments, verbosity.view)
    from orchestrator.plan.planning import plan_run

    planned = plan_run(options, verbosity.view, fewest=1)
    from orchestrator.measure.trial import try_workloads

    with verbosity.watch() as watching:
        tried = try_workloads(planned, watching)
    _print(tried, output.format)
    if died := sum(arm.outcome == "died" for arm in tried):
        raise ArmsDied(f"{died} of {len(tried)} did not run")


def _print(tried: Sequence["TriedArm"], format: str) -> None:
    if format == "json":
        print(strict_json.dump({"schema": SCHEMA, "arms": [strict_json.pick(arm, ARM) for arm in tried]}, indent=2))
        return
    from rich.table import Table

    from orchestrator.terminal.durations import format_time

    table = Table("case", "target", "build", "first call", "second call", "result")
    for arm in tried:
        times = ("" if ns is None else format_time(ns / 1e6) for ns in (arm.build_ns, arm.first_ns, arm.second_ns))
        result = f"{arm.outcome}: {arm.note}"
        if arm.outcome == "ran":
            result = "; ".join(text for text in (arm.output, arm.note) if text)
        table.add_row(*map(safe_text, (arm.case.label, str(arm.target), *times, result)))
    Console().print(table)
