"""`tfcompare check`: tries a workload before it is measured."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator import redact
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

SCHEMA = "tfcompare.check/1"
ARM = (
    "workload=case.workload params=case.params target outcome build_s=build_ns first_s=first_ns second_s=second_ns "
    "steps output note"
)
app = typer.Typer()


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
        typer.Argument(
            help="Targets to try it in. Default: the newest version.", metavar="[TARGET]...", show_default=False
        ),
    ] = None,
) -> None:
    r"""Try a workload: build each of its cases and call it twice, in one target or more.

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

    table = Table("case", "target", "build", "first call", "second call", "result")
    for arm in tried:
        times = (_format_ns(ns) for ns in (arm.build_ns, arm.first_ns, arm.second_ns))
        table.add_row(*map(safe_text, (arm.case.label, str(arm.target), *times, _result(arm))))
    Console().print(table)


def _result(arm: "TriedArm") -> str:
    if arm.outcome != "ran":
        return f"{arm.outcome}: {arm.note}"
    return "; ".join(text for text in (arm.output, arm.note) if text)


def _format_ns(ns: int | None) -> str:
    from orchestrator.terminal.durations import format_time

    return "" if ns is None else format_time(ns / 1e6)
