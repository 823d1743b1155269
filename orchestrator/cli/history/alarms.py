"""`tfcompare history alarms | known | mute | unmute`: alarms, and what the user says about them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.history.common import open_store, parse_day, read_alarms, warn
from orchestrator.cli.options import FormatFlags, HistoryFlags, with_options
from orchestrator.cli.talk import say
from orchestrator.terminal import strict_json

if TYPE_CHECKING:
    from orchestrator.history.model import Alarm, Event
    from orchestrator.history.store import Store

AlarmId = Annotated[
    str, typer.Argument(help="ID of the alarm, or the first characters of it.", metavar="ID", show_default=False)
]
Note = Annotated[str, typer.Option("--note", help="The reason, for later readers.", metavar="TEXT", show_default=False)]
Until = Annotated[
    str | None,
    typer.Option("--until", help="Mute the alarm up to this day, e.g. 2026-12-31. Default: for good.", metavar="DATE"),
]

app = typer.Typer()


@app.command("alarms")
@with_options
def list_alarms(
    history: HistoryFlags,
    output: FormatFlags,
    every: Annotated[bool, typer.Option("--all", help="Also list alarms that recovered.")] = False,
) -> None:
    """List alarms with size, first bad night, changes of that night, and commands to reproduce and bisect them."""
    from orchestrator.history import json as objects
    from orchestrator.history.alarms import state as states
    from orchestrator.history.terminal import alarms, plot

    all_alarms, warnings = read_alarms(open_store(history))
    warn(warnings)
    if output.format == "json":
        listed = [alarm for alarm in all_alarms if every or states.is_open_alarm(alarm)]
        print(strict_json.dump(objects.history_as_object((), listed, warnings), indent=2))
    else:
        plot.print_unbroken(alarms.render_alarms(all_alarms, whole=every))


@app.command("known")
@with_options
def know(id: AlarmId, note: Note, history: HistoryFlags) -> None:
    """Mark an alarm as known, with a note; nightly runs list it with the note until it recovers.

    [bold]Examples[/bold]

      tfcompare history known 3f9a12 --note 'new allocator, wanted'
    """
    from orchestrator.history.alarms import user_actions

    store, alarm, _ = _alarm(history, id)
    store.record(user_actions.move_alarm(alarm, "known", note, datetime.now(UTC)))
    say(f"alarm {alarm.id} is known: {note}")


@app.command("mute")
@with_options
def mute(id: AlarmId, note: Note, history: HistoryFlags, until: Until = None) -> None:
    """Silence an alarm, for good or until a date.

    [bold]Examples[/bold]

      tfcompare history mute 3f9a12 --note 'fix is in review' --until 2026-12-31
    """
    last = parse_day("--until", until)
    from orchestrator.history.alarms import user_actions

    store, alarm, _ = _alarm(history, id)
    store.record(user_actions.move_alarm(alarm, "muted", note, datetime.now(UTC), last))
    say(f"alarm {alarm.id} is muted{f' until {last}' if last else ''}: {note}")


@app.command("unmute")
@with_options
def unmute(
    history: HistoryFlags,
    id: AlarmId,
    note: Annotated[str, typer.Option("--note", help="New note, to replace the current one.", metavar="TEXT")] = "",
) -> None:
    """Undo `mute` or `known`, and restore the state that nightly runs gave the alarm."""
    from orchestrator.history.alarms import user_actions

    store, alarm, events = _alarm(history, id)
    moved = user_actions.take_back(alarm, events, note, datetime.now(UTC))
    store.record(moved)
    say(f"alarm {alarm.id} is {moved.state} again")


def _alarm(history: HistoryFlags, id: str) -> "tuple[Store, Alarm, Sequence[Event]]":
    from orchestrator.history.alarms import state as states
    from orchestrator.history.alarms import user_actions

    store = open_store(history)
    events, warnings = store.events()
    warn(warnings)
    return store, user_actions.find_alarm(states.current(events), id), events
