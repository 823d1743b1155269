"""The schedule of nightly runs: `tfcompare nightly install | status | uninstall | serve`."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from orchestrator import redact
from orchestrator.cli import parse
from orchestrator.cli.nightly.run import name_nights
from orchestrator.cli.options import INDEX_VARIABLE, FormatFlags, choice, with_options
from orchestrator.cli.talk import confirm, say
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.nightly.due import MISSED_POLICIES
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import escape_unprintable
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    from orchestrator.catalog.version import FlavourName
    from orchestrator.nightly.due import Missed
    from orchestrator.nightly.schedule.status import ScheduleStatus
    from orchestrator.nightly.schedule.units import PlannedSchedule, Schedule

# Each device has its own server, because docker-compose.yml has both; their nights wait for each other.
SERVERS: "Mapping[FlavourName, str]" = {"cpu": "nightly-serve-cpu", "gpu": "nightly-serve-gpu"}
# A scheduled nightly run gets these variables of the current environment, so that it equals one started by hand.
CARRIED = re.compile(
    "HOME|PATH|LANG|LC_ALL|TZ|DOCKER_.*|XDG_(DATA|CACHE|CONFIG|RUNTIME)_(HOME|DIR)|(SSL|REQUESTS|CURL|PIP|UV|TFCOMPARE)_.*"
    "|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
)
VALUE_OF = re.compile(r"\$\{(?P<name>\w+)\}")
PASSED_ALONG = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer()


class ServiceLog(View):
    """A view for a service, which prints each line to stdout at once."""

    def say(self, text: str) -> None:
        print(escape_unprintable(text), flush=True)


At = Annotated[
    str, typer.Option("--at", help="Time of day at which the nightly run starts, in local time.", metavar="HH:MM")
]
MissedFlag = Annotated[
    str,
    choice(
        "--missed", "way", MISSED_POLICIES, "After a missed nightly run: catch-up runs it late, skip leaves it out."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("install", context_settings=PASSED_ALONG)
@with_options
def install(
    context: typer.Context,
    at: At = "02:00",
    scheduler: Annotated[
        str | None,
        choice("--scheduler", "scheduler", ("systemd", "cron"), "Scheduler to use. Default: the first available."),
    ] = None,
    missed: MissedFlag = "catch-up",
    env_file: Annotated[
        Path | None,
        typer.Option(
            "--env-file",
            help="File with lines NAME='value' that set the environment of nightly runs, e.g. passwords.",
            metavar="FILE",
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Schedule a nightly run on this machine, with a systemd timer or a line in the crontab.

    The schedule is shown first, and written only if you confirm. All other flags are those of `nightly run`.

    [bold]Examples[/bold]

      tfcompare nightly install --at 02:00 --versions 2.13,nightly --suite studies

      tfcompare nightly install --at 23:30 --missed skip --scheduler cron --yes -- --versions 1.14,2.0,2.13 --limit 4h

      tfcompare nightly install --versions 2.13,nightly --notify-file ~/.config/tfcompare/notify
    """
    from orchestrator.nightly.due import next_after, time_of_day
    from orchestrator.nightly.schedule import schedulers, units
    from orchestrator.nightly.schedule import status as standing
    from orchestrator.terminal.durations import format_hours_minutes

    wanted, notes = _schedule(context, at, missed, env_file, units.zone(os.environ.get("TZ")))
    _refuse_secrets(redact.without_secrets(context.args))
    chosen = schedulers.find_scheduler(scheduler)
    before = [(other, entry) for other in schedulers.list_schedulers() if (entry := other.entry())]
    for where, text in chosen.render_files(wanted).items():
        print(f"{where}:\n")
        for line in text.splitlines():
            print(f"    {escape_unprintable(line)}".rstrip())
        print()
    for note in (*notes, *chosen.notes()):
        say(f"note: {note}")
    confirm("Write this?", yes, "written")
    now = standing.now()
    for _, entry in before:
        if entry.planned:
            entry.planned.due.forget()
    wanted.planned.due.wait_for_next(now)
    try:
        kept = chosen.install(wanted)
    except UsageError:
        wanted.planned.due.forget()
        raise
    print(f"written: {', '.join(chosen.render_files(wanted))}")
    for path in kept:
        print(f"{path.with_suffix('')} was replaced; the old one is in {path}")
    for other, _ in before:
        if other.title != chosen.title:
            other.uninstall()
            print(f"removed the schedule of {other.title}, because {chosen.title} starts the nightly runs now")
    following = next_after(now, time_of_day(at))
    print(f"the next nightly run starts at {following:%Y-%m-%d %H:%M %Z}, in {format_hours_minutes(following - now)}")


@app.command("status")
@with_options
def status(
    output: FormatFlags,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing: exit with 0 if all is well, with 3 if not.")
    ] = False,
) -> None:
    """Show the schedule, the next start, the last result, and whether a nightly run is in progress.

    [bold]Examples[/bold]

      tfcompare nightly status

      tfcompare nightly status --quiet || echo 'check the nightly runs'
    """
    from orchestrator.nightly import lock
    from orchestrator.nightly.schedule import status as standing

    schedules = list(_find_statuses())
    if quiet:
        if not schedules or any(schedule.wrong for schedule in schedules):
            raise typer.Exit(NothingSelected.exit_code)
        return
    if output.format == "json":
        print(strict_json.dump([schedule.as_object() for schedule in schedules], indent=2))
        return
    now = standing.now()
    for schedule in schedules:
        for line in standing.describe_status(schedule, now):
            print(escape_unprintable(line))
    if not schedules:
        print("nothing is scheduled here; `tfcompare nightly install --at 02:00 --versions ...` schedules runs")
        if running := lock.holder():
            print(f"now: a nightly run has been in progress since {running.since:%Y-%m-%d %H:%M} (pid {running.pid})")


@app.command("uninstall")
@with_options
def uninstall() -> None:
    """Remove what `nightly install` wrote, and nothing else.

    [bold]Examples[/bold]

      tfcompare nightly uninstall
    """
    from orchestrator.nightly import lock
    from orchestrator.nightly.schedule import schedulers

    entries = [(scheduler, entry) for scheduler in schedulers.list_schedulers() if (entry := scheduler.entry())]
    for scheduler, entry in entries:
        scheduler.uninstall()
        if entry.planned:
            entry.planned.due.forget()
        print(f"removed: {', '.join(where for where in entry.parts if where not in entry.missing)}")
    if not entries:
        print("nothing was scheduled here")
    if running := lock.holder():
        print(
            f"a nightly run has been in progress since {running.since:%H:%M} (pid {running.pid}); "
            "it continues to its end"
        )
    for serving in filter(None, (lock.holder(name=name) for name in SERVERS.values())):
        print(f"`tfcompare nightly serve` (pid {serving.pid}) also starts nightly runs here, until it is stopped")


@app.command("serve", context_settings=PASSED_ALONG)
@with_options
def serve(context: typer.Context, at: At = "02:00", missed: MissedFlag = "catch-up") -> None:
    """Start a nightly run every night until stopped; for containers, which have no scheduler.

    All other flags are those of `nightly run`.

    [bold]Examples[/bold]

      tfcompare nightly serve --at 02:00 --versions 2.13,nightly --suite studies
    """
    from orchestrator.child_process import BOUND_PROGRAM
    from orchestrator.nightly import lock
    from orchestrator.nightly.schedule import serve as serving
    from orchestrator.nightly.schedule import units

    wanted, _ = _schedule(context, at, missed, None)
    wanted = replace(wanted, program=BOUND_PROGRAM)

    about = units.as_text(wanted.planned)
    with lock.hold(name=SERVERS[wanted.planned.device], about=about):
        try:
            serving.serve_nights(wanted, ServiceLog())
        except KeyboardInterrupt:
            ServiceLog().say("stopped: no further nightly run starts")


def _schedule(
    context: typer.Context, at: str, missed: str, env_file: Path | None, zone: str = ""
) -> "tuple[Schedule, list[str]]":
    """Return the requested schedule, and the notes that the user should read."""
    from orchestrator.history.location import VARIABLE, history_path
    from orchestrator.nightly.due import time_of_day
    from orchestrator.nightly.schedule.status import now
    from orchestrator.nightly.schedule.units import PlannedSchedule, Schedule
    from orchestrator.plan.request import check_judge

    begins = time_of_day(at)
    words = tuple(context.args)
    night = _parse_as_run(context, words)
    asked = night.params
    if asked["if_due"] is not None:
        raise UsageError("--if-due: leave it out; a schedule adds this flag itself, with the time of --at")
    if env_file is not None and not env_file.is_file():
        raise UsageError(f"--env-file {env_file}: no such file")
    # These facts identify this machine in its nightly runs, and take a moment to collect.
    from orchestrator.machine.host import host_facts

    history = history_path(asked["history"])
    device: FlavourName = "gpu" if asked["gpu"] or asked["gpus"] or asked["gpu_exclusive"] else "cpu"
    check_judge(asked["judge"], gpu=device == "gpu")
    command_line = redact.without_secrets(words)
    parse.refuse_logins(command_line.words, "a schedule")
    environment, notes = _environment(command_line.words, env_file)
    notes += _readable_by_others([env_file, asked["notify_file"]])
    planned = PlannedSchedule(
        at=f"{begins:%H:%M}",
        missed=cast("Missed", missed),
        flags=command_line.words,
        history=str(history),
        host=str(host_facts()["id"]),
        since=now().replace(microsecond=0),
        zone=zone,
        device=device,
        nights=name_nights(night),
    )
    wanted = Schedule(
        planned=planned,
        program=_program(),
        environment={**environment, VARIABLE: str(history)},
        folder=Path.cwd(),
        env_file=env_file.absolute() if env_file else None,
        limit_s=parse.seconds("--limit", asked["limit"]),
        secrets=_variables(command_line),
    )
    return wanted, notes


def _refuse_secrets(command_line: redact.CommandLine) -> None:
    """Raise UsageError for anything that may be a token: other users can read a schedule's files and arguments."""
    if command_line.notify:
        masked = ", ".join(map(redact.mask_url, command_line.notify))
        raise UsageError(
            f"--notify {masked}: a schedule must not contain a token. Write the URL to a file that only you can read "
            "(chmod 600), and pass --notify-file FILE"
        )
    if command_line.index_url is not None:
        raise UsageError(
            f"--index-url {redact.mask_index(command_line.index_url)}: a schedule must not contain an address that may "
            f"hold a login or a token. Write {INDEX_VARIABLE}='URL' to a file that only you can read (chmod 600), and "
            "pass --env-file FILE"
        )


def _variables(command_line: redact.CommandLine) -> dict[str, str]:
    """Return the secrets of a command line as the environment variables that mean the same."""
    # This module is slow to import.
    from orchestrator.nightly.targets import VARIABLE as NOTIFY_VARIABLE

    variables = {}
    if command_line.notify:
        # A blank ends a URL in the variable.
        urls = [re.sub(r"\s", "%20", url.strip()) for url in command_line.notify]
        variables[NOTIFY_VARIABLE] = " ".join([*os.environ.get(NOTIFY_VARIABLE, "").split(), *urls])
    if command_line.index_url is not None:
        variables[INDEX_VARIABLE] = command_line.index_url
    return variables


def _readable_by_others(files: Iterable[Path | None]) -> list[str]:
    return [
        f"other users can read {file}, which holds secrets; run chmod 600 {file}"
        for file in files
        if file is not None and file.is_file() and file.stat().st_mode & 0o044
    ]


def _parse_as_run(context: typer.Context, words: Sequence[str]) -> typer.Context:
    """Parse the flags as `tfcompare nightly run` does, so that a mistake is reported now and not at night."""
    assert context.parent is not None
    group: Any = context.parent.command
    night: typer.Context = group.commands["run"].make_context(context.info_name, list(words), parent=context.parent)
    from orchestrator.catalog import workloads

    workloads.suite(night.params["suite"] or workloads.DEFAULT)
    parse.check_versions(parse.parse_names(night.params["versions"]))
    return night


def _program() -> tuple[str, ...]:
    from orchestrator.child_process import PROGRAM

    beside = Path(sys.executable).with_name("tfcompare")
    return (str(beside),) if beside.is_file() else PROGRAM


def _environment(words: Sequence[str], env_file: Path | None) -> tuple[dict[str, str], list[str]]:
    from orchestrator.catalog.variables import find_of_tensorflow

    inherited = find_of_tensorflow() if "--inherit-env" in words else {}
    carried, notes = {}, []
    for name, value in sorted(os.environ.items()):
        if not (CARRIED.fullmatch(name) or name in inherited):
            continue
        if redact.may_be_secret(name, value):
            if env_file is None:
                notes.append(f"{name} may hold a secret and is not stored; write it to a file and pass --env-file FILE")
        else:
            carried[name] = value
    for word in words:
        for match in VALUE_OF.finditer(word):
            if match["name"] not in carried and env_file is None:
                notes.append(f"{match[0]} will have no value at night; set it in a file and pass --env-file FILE")
    return carried, notes


def _find_statuses() -> "Iterable[ScheduleStatus]":
    from orchestrator.nightly import lock
    from orchestrator.nightly.schedule import schedulers, units
    from orchestrator.nightly.schedule import status as standing

    now = standing.now()
    running = lock.holder()
    for scheduler in schedulers.list_schedulers():
        entry = scheduler.entry()
        if entry is None:
            continue
        wrong = tuple(f"{where} is gone: install it again" for where in entry.missing)
        if entry.planned:
            yield standing.find_status(entry.planned, scheduler.title, _events(entry.planned), running, now, wrong)
    for serving in filter(None, (lock.holder(name=name) for name in SERVERS.values())):
        if planned := units.from_text(serving.about):
            by = f"`tfcompare nightly serve` (pid {serving.pid})"
            yield standing.find_status(planned, by, _events(planned), running, now)


def _events(planned: "PlannedSchedule") -> list[Any]:
    # This module also reads Parquet files, and is slow to import.
    from orchestrator.history.store import Store

    events, warnings = Store(Path(planned.history)).events()
    for warning in warnings:
        say(f"warning: {warning}")
    return events
