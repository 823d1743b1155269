"""`tfcompare nightly run`, next to the commands for its schedule and its notifications."""

import os
import socket
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli import help, parse, schedule
from orchestrator.cli import notify as cli_notify
from orchestrator.cli.options import (
    INDEX_VARIABLE,
    Base,
    Budget,
    CaBundle,
    Cpuset,
    EngineName,
    Force,
    Gpu,
    GpuExclusive,
    GpuRequest,
    Gpus,
    History,
    IndexUrl,
    Memory,
    NoPythonDownloads,
    Notify,
    NotifyFile,
    OwnWorkloads,
    Quiet,
    SuiteName,
    Threads,
    Timeout,
    Wheelhouse,
)
from orchestrator.errors import (
    ArmsDied,
    ContractBroken,
    EngineUnavailable,
    EnvironmentFailed,
    FoundSlower,
    Interrupted,
    NothingSelected,
    UsageError,
)
from orchestrator.history.location import place
from orchestrator.history.model import ROUNDS, Told
from orchestrator.terminal.text import lines

# What `tfcompare run` is given as it stands. The index's address may hold a login and goes by a variable.
PASSED = (
    "workloads", "engine", "gpu", "gpus", "gpu_request", "gpu_exclusive", "force", "base", "ca_bundle",
    "wheelhouse", "no_python_downloads", "budget", "threads", "cpuset", "memory", "timeout",
)  # fmt: skip

# The ways in which the run of a night may end. Code 1 is none of them: that is how Python itself ends after a crash.
RUN_ENDINGS = {
    kind.exit_code: kind
    for kind in (
        UsageError,
        NothingSelected,
        EngineUnavailable,
        EnvironmentFailed,
        ArmsDied,
        ContractBroken,
        Interrupted,
    )
}

app = typer.Typer(help=help.NIGHTLY, no_args_is_help=True)
app.add_typer(schedule.app)
app.add_typer(cli_notify.app)


@app.command("run", help=help.NIGHTLY_RUN)
def run(
    context: typer.Context,
    versions: Annotated[
        str,
        typer.Option(
            help="Versions to follow, e.g. nightly,2.13; the first that is pinned is the reference.",
            show_default=False,
        ),
    ],
    suite: SuiteName = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Cases to run instead of the whole suite: name\\[param=value,...]; repeatable."),
    ] = None,
    history: History = None,
    rounds: Annotated[
        int, typer.Option(min=2, max=1000, help="Rounds of everything; what looks changed gets several times as many.")
    ] = ROUNDS,
    limit: Annotated[str, typer.Option(help="A night that takes longer is ended, and told.")] = "6h",
    again: Annotated[bool, typer.Option("--again", help="Measure a night again that was measured already.")] = False,
    due: Annotated[
        str | None,
        typer.Option(
            help="Time of day when this nightly run was due. If that was yesterday, it is dated yesterday. A schedule "
            "passes its own --at.",
            show_default=False,
        ),
    ] = None,
    keep_nightlies: Annotated[
        int, typer.Option(min=1, help="So many nightly TensorFlows stay installed; older ones are removed.")
    ] = 3,
    notify: Notify = None,
    notify_file: NotifyFile = None,
    heartbeat: Annotated[
        bool, typer.Option("--heartbeat", help="Tell people of a night on which nothing happened, too.")
    ] = False,
    workloads: OwnWorkloads = None,
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
    budget: Budget = None,
    threads: Threads = None,
    cpuset: Cpuset = None,
    memory: Memory = None,
    timeout: Timeout = "10m",
    quiet: Quiet = False,
) -> None:
    # What only a night needs: a second of imports that `nightly status` does without.
    from orchestrator.nightly import message, night
    from orchestrator.nightly import notify as notifying
    from orchestrator.nightly.schedule import units

    errors = Console(stderr=True)

    def say(text: str) -> None:
        if not quiet:
            errors.print(lines(text), soft_wrap=True)

    words = passed(context)
    parse.refuse_logins((*words, *(workload or ())), "the arguments of a night's run, which every user can read,")
    asked = night.NightOptions(
        history=place(history),
        names=parse.names(versions),
        suite=suite,
        selected=tuple(workload or ()),
        own_workloads=workloads,
        flags=words,
        variables={INDEX_VARIABLE: index_url} if index_url else {},
        rounds=rounds,
        limit_s=parse.seconds("--limit", limit),
        again=again,
        due=units.time_of_day(due, "--due") if due else None,
        keep_nightlies=keep_nightlies,
    )
    targets = notifying.targets(notify or (), notify_file, os.environ, say)
    told = night.night(asked, say)
    if told.night.outcome == "skipped":
        return
    made = message.compose(told, socket.gethostname())
    print(f"{made.title}\n\n{made.text}", end="")
    # The night is done and kept: who could not be told changes nothing of it.
    for line in notifying.send(told, targets, heartbeat=heartbeat, say=say):
        errors.print(lines(f"warning: {line}"), soft_wrap=True)
    if error := ending(told):
        raise error


def passed(context: typer.Context) -> tuple[str, ...]:
    """Return the flags as they were given; settings in the environment reach `tfcompare run` without them."""
    words: list[str] = []
    for name in PASSED:
        if getattr(context.get_parameter_source(name), "name", "") != "COMMANDLINE":
            continue
        flag, value = "--" + name.replace("_", "-"), context.params[name]
        words += [flag] if value is True else [flag, str(value)]
    return tuple(words)


def ending(told: Told) -> BaseException | None:
    """Return the error that determines the exit code of a nightly run.

    What aborted the run comes first, then an alarm, then what could not be measured.
    """
    if told.failure:
        return told.failure
    slower = [alarm for alarm in told.opened if alarm.change.direction == "slower"]
    if slower:
        return FoundSlower(f"{len(slower)} new alarms; `tfcompare history` shows them")
    end = told.night
    if end.outcome == "hung":
        return ArmsDied(f"the night of {end.night} took too long and was ended")
    said = " ".join(end.said) or "; ".join(told.warnings)
    if end.exit_code == 0:
        return None
    return RUN_ENDINGS.get(end.exit_code, EnvironmentFailed)(f"the night of {end.night} is not whole: {said}")
