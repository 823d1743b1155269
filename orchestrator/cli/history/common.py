"""Functions that the commands of `tfcompare history` share."""

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from orchestrator.cli.options import HistoryFlags
from orchestrator.cli.talk import say
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.history.model import Alarm
    from orchestrator.history.store import Store


def open_store(asked: HistoryFlags) -> "Store":
    from orchestrator.history.location import history_path
    from orchestrator.history.store import Store

    path = history_path(asked.history)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is no folder: --history is where a history is, or will be")
    return Store(path)


def read_alarms(store: "Store") -> "tuple[tuple[Alarm, ...], tuple[str, ...]]":
    from orchestrator.history.alarms import state as states

    events, warnings = store.events()
    return states.current(events), warnings


def parse_day(flag: str, text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"{flag} {text!r}: a day, e.g. 2026-11-21") from error


def warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        say(f"warning: {warning}")
