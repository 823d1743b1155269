"""`tfcompare history [CASE]` and its commands: query, import, alarms, the user's answers to alarms, and site."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, date, datetime
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator.cli import parse
from orchestrator.cli.options import FORMATS, FormatFlags, HistoryFlags, choice, with_options
from orchestrator.cli.talk import say
from orchestrator.errors import ContractBroken, NothingSelected, UsageError
from orchestrator.terminal.text import print_table

if TYPE_CHECKING:
    from orchestrator.history.model import Alarm, Event
    from orchestrator.history.store import Store

SHOW = "show"
# What `sql_output` writes, and a test holds equal; it imports pyarrow.
QUERY_FORMATS = ("table", "csv", "json", "parquet")
EMPTY = (
    "there is nothing in the history {path} yet: `tfcompare nightly run --versions 2.13,nightly` measures a first "
    "night, `tfcompare history import RUN` adds a run that is there, --history DIR looks elsewhere"
)


HISTORY = r"""Show what the nights measured: all series and alarms, or one case night by night, as a table and a plot.

[bold]Examples[/bold]

  tfcompare history

  tfcompare history 'predict\[model=tiny]' --version nightly --last 60

  tfcompare history train_loop --since 2026-09-01 --format csv > nights.csv
"""


class CaseOrCommand(TyperGroup):
    """A group that also accepts a case in place of a command.

    The first word that is not an option is a command if it names one, and otherwise the case to show. Options may come
    before either.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = self._first_word(ctx, args)
        if not set(args[:at]) & set(ctx.help_option_names):
            named = at < len(args) and args[at] in self.commands
            args = [args[at], *args[:at], *args[at + 1 :]] if named else [SHOW, *args]
        return super().parse_args(ctx, args)

    def _first_word(self, ctx: Any, args: Sequence[str]) -> int:
        valued = {
            name
            for command in self.commands.values()
            for param in command.get_params(ctx)
            if not getattr(param, "is_flag", True)
            for name in param.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if args[at] in valued else 1
        return at

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # What stands after `history` without a command belongs to the one that shows.
        self.params = [param for param in self.commands[SHOW].get_params(ctx) if param.name != "help"]
        super().format_help(ctx, formatter)


app = typer.Typer(
    cls=CaseOrCommand,
    help=HISTORY,
    subcommand_metavar="| COMMAND [ARGS]...",
)

AlarmId = Annotated[
    str, typer.Argument(help="The alarm, or the beginning of its id.", metavar="ID", show_default=False)
]
Note = Annotated[str, typer.Option("--note", help="Why, for whoever reads it next.", show_default=False)]
Until = Annotated[str | None, typer.Option("--until", help="The last day of it, e.g. 2026-12-31.", metavar="DATE")]


@app.command(SHOW, help=HISTORY, hidden=True)
@with_options
def show(
    history: HistoryFlags,
    case: Annotated[
        str | None, typer.Argument(help="A case, a workload, or a part of a case's name.", metavar="CASE")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Only so many nights, the newest.", show_default=False)
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only nights from this one on, e.g. 2026-11-01.", metavar="DATE")
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", help="Only these versions, e.g. 2.13,nightly.", show_default=False)
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Only these hosts, by the beginning of their names.")
    ] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="Only docker, or only venv.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="Only cpu, or only gpu.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every night and every series, the control arm and those that ended, too.")
    ] = False,
    format: Annotated[
        str,
        choice(
            "--format", "format", (*FORMATS, "csv"), "What is printed on stdout.", rich_help_panel=FormatFlags.panel
        ),
    ] = "table",
) -> None:
    # What draws and judges: the commands that only say something need none of it.
    from orchestrator.history import json as objects
    from orchestrator.history import select
    from orchestrator.history.alarms import steps
    from orchestrator.history.terminal import tables as show

    asked = select.SeriesSelection(
        case=case,
        versions=parse.names(version or ""),
        hosts=parse.names(host or ""),
        engines=parse.names(engine or ""),
        devices=parse.names(device or ""),
        last=last,
        since=_day("--since", since),
        whole=every,
    )
    store = _open(history)
    read = store.read()
    known, more = _alarms(store)
    warnings = (*read.warnings, *more)
    _warn(warnings)
    if not read.table.num_rows:
        if case:
            raise NothingSelected(EMPTY.format(path=store.path))
        _empty(store, format, warnings)
        return
    picked = select.pick(read.table, asked, list(_commands()))
    one_case = len(picked.cases) == 1
    listed = objects.build_shown_series(picked, known, steps.changes if one_case else None)
    if format == "json":
        shown = {one.series.key for one in listed}
        about = [alarm for alarm in known if alarm.key in shown]
        print(json.dumps(objects.as_object(listed, about, warnings), indent=2))
    elif format == "csv":
        print(objects.as_csv(listed), end="")
    elif one_case:
        print_table(lambda width: show.detail(listed, width, whole=every))
    else:
        print_table(lambda width: show.overview(picked, listed, known, width))


@app.command("query")
@with_options
def query_history(
    history: HistoryFlags,
    sql: Annotated[
        str | None, typer.Argument(help="One SELECT; without it, what there is to ask for.", metavar="SQL")
    ] = None,
    format: Annotated[
        str, choice("--format", "format", QUERY_FORMATS, "What is written.", rich_help_panel=FormatFlags.panel)
    ] = "table",
    output: Annotated[str | None, typer.Option("--output", help="A file, or - for stdout.", show_default=False)] = None,
) -> None:
    """Ask the history in SQL; without a query, say which views and columns there are.

    [bold]Examples[/bold]

      tfcompare history query

      tfcompare history query 'SELECT night, version, ratio FROM series ORDER BY night'

      tfcompare history query 'SELECT * FROM points' --format parquet --output points.parquet
    """
    from orchestrator.history import sql as query
    from orchestrator.history import sql_output
    from orchestrator.history.terminal import plot

    if sql is None:
        plot.say(query.listing())
        return
    path = None if output in (None, "-") else Path(output or "")
    sql_output.check(format, path)
    store = _open(history)
    read = store.read()
    events, more = store.events()
    _warn((*read.warnings, *more))
    found = query.query(sql, read, events)
    if path:
        sql_output.write(found, format, path)
        say(f"written: {path}")
    elif format == "table":
        print_table(lambda width: sql_output.table(found))
    else:
        print(sql_output.text(found, format), end="")


@app.command("import")
@with_options
def import_run(
    history: HistoryFlags,
    run: Annotated[Path, typer.Argument(help="A run directory.", metavar="RUN", show_default=False)],
    night: Annotated[
        str | None,
        typer.Option("--night", help="Of which night it is, if not of the day it began.", metavar="DATE"),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="Under which name a version is followed, e.g. 2.22.0.dev20261121=nightly; repeatable.",
            metavar="BUILD=NAME",
        ),
    ] = None,
) -> None:
    """Add the comparisons of a run to the history as a separate night. The run directory stays where it is.

    [bold]Examples[/bold]

      tfcompare history import runs/first

      tfcompare history import runs/tuesday --night 2026-11-17 --name 2.22.0.dev20261117=nightly
    """
    from orchestrator.history.points import of_run
    from orchestrator.results.run import load_run
    from orchestrator.results.rundir import RunDir

    day = _day("--night", night)
    store = _open(history)
    directory = RunDir.open(run)
    # One that is still being measured would be in with what it has now, and never with the rest.
    with directory.hold() if access(run, W_OK) else nullcontext():
        loaded = load_run(run)
    if loaded.comparison.broken:
        raise ContractBroken(
            f"{run} is not imported, for what is in the history stays there: {'; '.join(loaded.comparison.broken)}"
        )
    plan = loaded.plan
    if plan.run in store.list_runs():
        raise UsageError(f"run {plan.run} is in the history {store.path} already; nothing was added")
    points = of_run(loaded, "screen", day, _names(name or (), plan.versions))
    if not points:
        raise NothingSelected(
            f"{run} has no contrast of a version with {plan.versions[0]}, its first one: a history is made of those"
        )
    path = store.append(points)
    timed = sum(point.effect is not None for point in points)
    say(f"{len(points)} contrasts, {timed} of them with a time, are the night of {points[0].night} now: {path}")


@app.command("alarms")
@with_options
def list_alarms(
    history: HistoryFlags,
    output: FormatFlags,
    every: Annotated[bool, typer.Option("--all", help="Those that recovered, too.")] = False,
) -> None:
    """List alarms: size, first bad night, what changed then, the commands to reproduce and bisect."""
    from orchestrator.history import json as objects
    from orchestrator.history.alarms import state as states
    from orchestrator.history.terminal import alarms, plot

    known, warnings = _alarms(_open(history))
    _warn(warnings)
    if output.format == "json":
        shown = [alarm for alarm in known if every or states.is_open(alarm)]
        print(json.dumps(objects.as_object((), shown, warnings), indent=2))
    else:
        plot.say(alarms.render_alarms(known, whole=every))


@app.command("known")
@with_options
def know(id: AlarmId, note: Note, history: HistoryFlags) -> None:
    """Say that an alarm is known, and why; nights list it with this note until it recovers.

    [bold]Examples[/bold]

      tfcompare history known 3f9a12 --note 'new allocator, wanted'
    """
    from orchestrator.history.alarms import user_actions

    store, alarm, _ = _alarm(history, id)
    store.record(user_actions.say(alarm, "known", note, _now()))
    say(f"alarm {alarm.id} is known: {note}")


@app.command("mute")
@with_options
def mute(id: AlarmId, note: Note, history: HistoryFlags, until: Until = None) -> None:
    """Say nothing more of an alarm, for good or until a day.

    [bold]Examples[/bold]

      tfcompare history mute 3f9a12 --note 'fix is in review' --until 2026-12-31
    """
    last = _day("--until", until)
    from orchestrator.history.alarms import user_actions

    store, alarm, _ = _alarm(history, id)
    store.record(user_actions.say(alarm, "muted", note, _now(), last))
    say(f"alarm {alarm.id} is muted{f' until {last}' if last else ''}: {note}")


@app.command("unmute")
@with_options
def unmute(
    history: HistoryFlags,
    id: AlarmId,
    note: Annotated[str, typer.Option("--note", help="Why, in place of the note that it has.")] = "",
) -> None:
    """Take back that an alarm is muted or known: it is again what the nights made of it."""
    from orchestrator.history.alarms import user_actions

    store, alarm, events = _alarm(history, id)
    moved = user_actions.take_back(alarm, events, note, _now())
    store.record(moved)
    say(f"alarm {alarm.id} is {moved.state} again")


@app.command("site")
@with_options
def write_site(
    history: HistoryFlags,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the pages; one that holds them is renewed.", show_default=False)
    ],
    runs_url: Annotated[
        str | None,
        typer.Option(
            "--runs-url", help="Where run directories are published, if not beside the history.", metavar="URL"
        ),
    ] = None,
) -> None:
    """Write the history as static pages, with a feed of its alarms; they open without a server.

    [bold]Examples[/bold]

      tfcompare history site --out public
    """
    from orchestrator.history import site

    built = site.build(_open(history), out, runs_url=runs_url)
    _warn(built.warnings)
    say(f"written: {built.index} ({built.pages} pages, {built.cases} cases, {built.series} series)")


def _open(asked: HistoryFlags) -> "Store":
    from orchestrator.history.location import history_path
    from orchestrator.history.store import Store

    path = history_path(asked.history)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is no folder: --history is where a history is, or will be")
    return Store(path)


def _alarms(store: "Store") -> "tuple[tuple[Alarm, ...], tuple[str, ...]]":
    from orchestrator.history.alarms import state as states

    events, warnings = store.events()
    return states.current(events), warnings


def _alarm(history: HistoryFlags, id: str) -> "tuple[Store, Alarm, Sequence[Event]]":
    from orchestrator.history.alarms import state as states
    from orchestrator.history.alarms import user_actions

    store = _open(history)
    events, warnings = store.events()
    _warn(warnings)
    return store, user_actions.find(states.current(events), id), events


def _empty(store: "Store", format: str, warnings: Sequence[str]) -> None:
    from orchestrator.history import json as objects

    if format == "json":
        print(json.dumps(objects.as_object((), (), warnings), indent=2))
    elif format == "csv":
        print(objects.as_csv(()), end="")
    else:
        say(EMPTY.format(path=store.path))


def _names(given: Sequence[str], versions: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        build, _, name = text.partition("=")
        if not build or not name:
            raise UsageError(f"--name {text!r}: a version of the run and its name, e.g. 2.22.0.dev20261121=nightly")
        if build not in versions[1:]:
            from orchestrator.catalog import did_you_mean

            raise UsageError(
                f"--name {text!r}: the run compares {', '.join(versions[1:])}{did_you_mean(build, versions[1:])}"
            )
        found[build] = name
    return found


def _day(flag: str, text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"{flag} {text!r}: a day, e.g. 2026-11-21") from error


def _commands() -> tuple[str, ...]:
    return tuple(one.name for one in app.registered_commands if one.name and one.name != SHOW)


def _now() -> datetime:
    return datetime.now(UTC)


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        say(f"warning: {warning}")
