"""`tfcompare nightly run`: measures and judges one night."""

import os
import socket
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli import parse
from orchestrator.cli.options import (
    INDEX_VARIABLE,
    BudgetFlags,
    GpuFlags,
    HistoryFlags,
    InstallationFlags,
    JudgeFlags,
    MachineFlags,
    MeasuringGpuFlags,
    NotifyFlags,
    OwnWorkloadsFlags,
    PlaceFlags,
    QuietFlags,
    SelectionFlags,
    choice,
    find_given_flags,
    names_of,
    number,
    with_options,
)
from orchestrator.cli.settings import VARIABLE, is_of_folder
from orchestrator.errors import (
    ArmsDied,
    ContractBroken,
    EngineUnavailable,
    EnvironmentFailed,
    Interrupted,
    NothingSelected,
    OutcomeFound,
    UsageError,
)
from orchestrator.nightly.due import MISSED_POLICIES, DueNights, time_of_day
from orchestrator.options import NIGHT_ROUNDS
from orchestrator.saved_models.question import FORMATS
from orchestrator.terminal.counts import format_count, name_some
from orchestrator.terminal.text import escape_lines

if TYPE_CHECKING:
    from orchestrator.history.model import NightReport

# `tfcompare run` gets these flags unchanged. The index's address may hold a login, so a variable passes it on.
PASSED = names_of(
    OwnWorkloadsFlags, MachineFlags, MeasuringGpuFlags, InstallationFlags, BudgetFlags, JudgeFlags, PlaceFlags
) - {"index_url"}

# `tfcompare models` gets these.
OF_MODELS = names_of(MachineFlags, GpuFlags, InstallationFlags) - {"index_url"}
ALL = "all"

# These flags distinguish the nights of one schedule from those of another.
DECISIVE = PASSED | names_of(SelectionFlags, HistoryFlags) | {"versions"}

# The run of a night may end in these ways. Code 1 is not one of them, because Python ends with it after a crash.
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

app = typer.Typer()


@app.command("run")
@with_options
def run(
    context: typer.Context,
    versions: Annotated[
        str,
        typer.Option(
            help="Versions to follow, e.g. nightly,2.13; the first pinned version is the reference.",
            show_default=False,
            metavar="VERSIONS",
        ),
    ],
    selection: SelectionFlags,
    budget: BudgetFlags,
    judge: JudgeFlags,
    machine: MachineFlags,
    gpu: MeasuringGpuFlags,
    installation: InstallationFlags,
    machines: PlaceFlags,
    history: HistoryFlags,
    recipients: NotifyFlags,
    verbosity: QuietFlags,
    rounds: Annotated[
        int,
        number(
            "--rounds",
            2,
            1000,
            "Rounds for every case; cases that look changed get several times as many.",
            rich_help_panel=BudgetFlags.panel,
        ),
    ] = NIGHT_ROUNDS,
    limit: Annotated[
        str, typer.Option("--limit", help="Stop the nightly run after this long and report it.", metavar="DURATION")
    ] = "6h",
    again: Annotated[bool, typer.Option("--again", help="Measure again even if this date has a nightly run.")] = False,
    if_due: Annotated[
        str | None,
        typer.Option(
            "--if-due",
            help="Start only if the nightly run that is due at this time of day has not started yet. For a scheduler "
            "that calls the command every 15 minutes.",
            show_default=False,
            metavar="HH:MM",
        ),
    ] = None,
    missed: Annotated[
        str,
        choice(
            "--missed",
            "way",
            MISSED_POLICIES,
            "With --if-due, after a missed nightly run: catch-up runs it late, skip leaves it out.",
        ),
    ] = MISSED_POLICIES[0],
    backfill: Annotated[
        str,
        typer.Option(
            help="Look for the causes of alarms for at most this long: ask why cases changed, and measure nightlies "
            "that no nightly run has measured. 0 turns both off.",
            metavar="DURATION",
        ),
    ] = "30m",
    saved_models: Annotated[
        str | None,
        choice(
            "--saved-models",
            "format",
            FORMATS,
            "After measuring, save models in these formats (or all), load them in all versions as `tfcompare models` "
            "does, and report models that were ok last time and no longer are.",
            first=(ALL,),
            several=True,
        ),
    ] = None,
    keep_nightlies: Annotated[
        int, number("--keep-nightlies", 1, 1000, "Number of tf-nightly versions to keep; older ones are removed.")
    ] = 3,
    heartbeat: Annotated[
        bool,
        typer.Option("--heartbeat", help="Also notify when nothing changed.", rich_help_panel=NotifyFlags.panel),
    ] = False,
) -> None:
    """Measure, compare with all earlier nightly runs, and exit with 1 if a slower case raised a new alarm.

    A suite is measured against a pinned reference. Cases that look changed are measured again in the same nightly run.

    [bold]Examples[/bold]

      tfcompare nightly run --versions 2.13,nightly

      tfcompare nightly run --versions 1.14,2.0,2.13 --suite studies --engine venv --limit 4h

      tfcompare nightly run --versions 2.13,nightly --notify 'mailto://${USER}:${PASSWORD}@example.org' --heartbeat
    """
    names = parse.parse_names(versions)
    parse.check_versions(names)
    due = DueNights(name_nights(context), time_of_day(if_due, "--if-due"), missed) if if_due else None
    if due and due.look(datetime.now()) != "begin":
        return
    words = flags_as_given(context)
    selected = tuple(selection.case or ())
    parse.refuse_logins((*words, *selected), "the arguments of a nightly run, which every user can read,")
    # Only a night needs these imports; they take a second, which `nightly status` saves.
    from orchestrator.history.location import history_path, name_in_commands
    from orchestrator.nightly import message, night
    from orchestrator.nightly import notify as notifying
    from orchestrator.nightly.options import NightOptions
    from orchestrator.nightly.targets import find_targets
    from orchestrator.plan.request import check_judge

    view, index_url = verbosity.view, installation.index_url
    asked = NightOptions(
        history=history_path(history.history),
        names=names,
        suite=selection.suite,
        selected=selected,
        own_workloads=selection.workload_folder,
        flags=words,
        fleet=machines.fleet(),
        # The flags already include the settings of the folder.
        variables={VARIABLE: "", **({INDEX_VARIABLE: index_url} if index_url else {})},
        rounds=rounds,
        limit_s=parse.seconds("--limit", limit),
        again=again,
        backfill_s=0.0 if backfill.strip() == "0" else parse.seconds("--backfill", backfill),
        keep_nightlies=keep_nightlies,
        models=_list_models_flags(context, saved_models, machines) if saved_models else (),
    )
    targets = find_targets(
        recipients.notify or (),
        recipients.notify_file,
        os.environ,
        view,
        is_own_file=not is_of_folder(context, "notify_file"),
    )
    check_judge(judge.judge, gpu=asked.device == "gpu")
    if due:
        asked = replace(asked, night=due.claim(datetime.now()))
        if asked.night is None:
            return
    summary = replace(night.run_night(asked, view), history=name_in_commands(asked.history))
    if summary.night.outcome == "skipped":
        return
    notification = message.compose(summary, socket.gethostname())
    print(f"{notification.title}\n\n{notification.text}", end="")
    # The results are stored by now; a notification that fails is only a warning.
    errors = Console(stderr=True)
    for line in notifying.send(summary, targets, heartbeat=heartbeat, view=view):
        errors.print(escape_lines(f"warning: {line}"), soft_wrap=True)
    if error := ending(summary):
        raise error


def name_nights(context: typer.Context) -> str:
    """Return a short name for the nights that a command line asks for; different options give different names."""
    asked = [(flag, str(value)) for name, (flag, value) in find_given_flags(context).items() if name in DECISIVE]
    return sha256(repr(sorted(asked)).encode()).hexdigest()[:12]


def _list_models_flags(context: typer.Context, formats: str, machines: PlaceFlags) -> tuple[str, ...]:
    """Return the flags with which `tfcompare models` makes the table of a night."""
    if not machines.fleet().is_local:
        raise UsageError("--saved-models works only on this machine, so it cannot be combined with --on")
    named = parse.parse_names(formats)
    return ("--formats", ",".join(FORMATS if ALL in named else named), *flags_as_given(context, OF_MODELS))


def flags_as_given(context: typer.Context, passed: frozenset[str] = PASSED) -> tuple[str, ...]:
    """Return the flags as they were given or set; `tfcompare run` inherits the environment."""
    words: list[str] = []
    for name, (flag, value) in find_given_flags(context, settings=True).items():
        if name in passed:
            values = value if isinstance(value, list | tuple) else [value]
            words += [flag] if value is True else [word for each in values for word in (flag, str(each))]
    return tuple(words)


def ending(summary: "NightReport") -> BaseException | None:
    """Return the error that determines the exit code of a nightly run.

    An error that aborted the run comes first, then an alarm, then anything that could not be measured.
    """
    if summary.failure:
        return summary.failure
    if summary.broken:
        return OutcomeFound(f"saved models that were ok no longer are: {name_some(summary.broken, 1, 'reason')}")
    worse = [alarm for alarm in summary.certain if alarm.change.direction == "slower"]
    if worse:
        return OutcomeFound(f"{format_count(len(worse), 'new alarm')}; `tfcompare history{summary.history}` shows them")
    end = summary.night
    if end.outcome == "hung":
        return ArmsDied(f"the nightly run of {end.night} took too long and was ended")
    reason = " ".join(end.said) or "; ".join(summary.warnings)
    if end.exit_code == 0:
        return None
    return RUN_ENDINGS.get(end.exit_code, EnvironmentFailed)(f"the nightly run of {end.night} is incomplete: {reason}")
