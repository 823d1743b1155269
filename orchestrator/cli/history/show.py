"""`tfcompare history [CASE]`: all series and alarms, or one case night by night; the group takes a case as well."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator.cli import parse
from orchestrator.cli.history.common import open_store, parse_day, read_alarms, warn
from orchestrator.cli.options import FORMATS, FormatFlags, HistoryFlags, choice, number, with_options
from orchestrator.cli.talk import say
from orchestrator.errors import NothingSelected
from orchestrator.metrics import OF_SERIES
from orchestrator.metrics.followed import from_name
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table

if TYPE_CHECKING:
    from orchestrator.history.model import Change, Key, Segment
    from orchestrator.history.store import Store

SHOW = "show"
EMPTY = (
    "there is nothing in the history {path} yet: `tfcompare nightly run --versions 2.13,nightly` measures a first "
    "night, `tfcompare history import RUN` adds an existing run, and --history FOLDER looks in another folder"
)
HISTORY = r"""Show the results of nightly runs: all series and alarms, or one case night by night, with a plot.

[bold]Examples[/bold]

  tfcompare history

  tfcompare history 'predict\[model=tiny]' --versions nightly --last 60

  tfcompare history train_loop --metric memory,output

  tfcompare history train_loop --since 2026-09-01 --format csv > nights.csv
"""

app = typer.Typer()


class CaseOrCommand(TyperGroup):
    """A group that also accepts a case in place of a command.

    The first word that is not an option is a command if it names one, and otherwise the case to show. Options may come
    before either.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        valued = {
            name
            for command in self.commands.values()
            for param in command.get_params(ctx)
            if not getattr(param, "is_flag", True)
            for name in param.opts
        }
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] != "--":
            index += 2 if args[index] in valued else 1
        if not set(args[:index]) & set(ctx.help_option_names):
            named = index < len(args) and args[index] in self.commands
            args = [args[index], *args[:index], *args[index + 1 :]] if named else [SHOW, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # Options after `history` without a command belong to `show`.
        self.params = [param for param in self.commands[SHOW].get_params(ctx) if param.name != "help"]
        super().format_help(ctx, formatter)


@app.command(SHOW, help=HISTORY)
@with_options
def show(
    context: typer.Context,
    history: HistoryFlags,
    case: Annotated[
        str | None, typer.Argument(help="A case, a workload, or a part of a case's name.", metavar="CASE")
    ] = None,
    last: Annotated[
        int | None, number("--last", 1, 100_000, "Show only the newest N nights.", show_default=False)
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Show only nights from this date on, e.g. 2026-11-01.", metavar="DATE")
    ] = None,
    versions: Annotated[
        str | None,
        typer.Option(
            "--versions",
            "--version",
            help="Show only these versions, e.g. 2.13,nightly.",
            show_default=False,
            metavar="VERSIONS",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Show only hosts whose names start with one of these.", metavar="HOST,..."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="Show only this engine: docker or venv.", metavar="ENGINE")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="Show only this device: cpu or gpu.", metavar="DEVICE")
    ] = None,
    metric: Annotated[
        str, choice("--metric", "metric", OF_SERIES, "Metrics to show for each case.", several=True)
    ] = "time",
    every: Annotated[
        bool, typer.Option("--all", help="Show every night and every series, including controls and those that ended.")
    ] = False,
    format: Annotated[
        str,
        choice("--format", "format", (*FORMATS, "csv"), "Output format.", rich_help_panel=FormatFlags.panel),
    ] = "table",
) -> None:
    # These modules draw and judge, which the other commands do not need.
    from orchestrator.history import json as objects
    from orchestrator.history import select
    from orchestrator.history.alarms import steps
    from orchestrator.history.series import all_arrays, last_segments
    from orchestrator.history.terminal import tables as show

    asked = select.SeriesSelection(
        case=case,
        targets=parse.parse_names(versions or ""),
        hosts=parse.parse_names(host or ""),
        engines=parse.parse_names(engine or ""),
        devices=parse.parse_names(device or ""),
        metrics=tuple(map(from_name, parse.parse_names(metric))),
        last=last,
        since=parse_day("--since", since),
        whole=every,
    )
    store = open_store(history)
    read = store.read()
    alarms, more = read_alarms(store)
    warnings = (*read.warnings, *more)
    warn(warnings)
    if not read.table.num_rows:
        if case:
            raise NothingSelected(EMPTY.format(path=store.path))
        _empty(store, format, warnings)
        return
    picked = select.pick_series(read.table, asked, _commands(context))
    one_case = len(picked.cases) == 1
    wander = steps.find_wander(last_segments(all_arrays(read.table))) if one_case else {}

    def find_changes(key: "Key", segment: "Segment") -> Sequence["Change"]:
        return steps.changes(segment, wander.get(key.alike, 0.0))

    listed = objects.build_shown_series(picked, alarms, find_changes if one_case else None)
    if format == "json":
        keys = {entry.series.key for entry in listed}
        about = [alarm for alarm in alarms if alarm.key in keys]
        print(strict_json.dump(objects.history_as_object(listed, about, warnings), indent=2))
    elif format == "csv":
        print(objects.as_csv(listed), end="")
    elif one_case:
        print_table(lambda width: show.detail(listed, width, whole=every))
    else:
        print_table(lambda width: show.overview(picked, listed, alarms, width))


def _empty(store: "Store", format: str, warnings: Sequence[str]) -> None:
    from orchestrator.history import json as objects

    if format == "json":
        print(strict_json.dump(objects.history_as_object((), (), warnings), indent=2))
    elif format == "csv":
        print(objects.as_csv(()), end="")
    else:
        say(EMPTY.format(path=store.path))


def _commands(context: typer.Context) -> list[str]:
    assert context.parent is not None
    group: Any = context.parent.command
    return [name for name in group.commands if name != SHOW]
