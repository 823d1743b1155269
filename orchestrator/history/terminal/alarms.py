"""Text output of alarms: one line each, as a table, or with everything that helps to find the cause."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.style import StyleType
from rich.text import Text

from orchestrator.history.alarms.state import is_open_alarm
from orchestrator.history.model import Alarm, Change, Key, State
from orchestrator.history.select import case_of
from orchestrator.history.terminal.plot import MARKS
from orchestrator.history.wording import describe_alarm, describe_cause, describe_evidence, describe_size
from orchestrator.metrics.followed import RESULTS
from orchestrator.reports.columns import LONGEST, STYLES, ratio
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.text import clip, safe_text

INDENT = (0, 0, 0, 8)
ORDER: tuple[State, ...] = ("new", "confirmed", "known", "muted", "recovered")


def sort_alarms(alarms: Iterable[Alarm]) -> list[Alarm]:
    """Sort alarms by state, starting with those not yet reviewed, and then from new to old."""
    newest = sorted(alarms, key=lambda alarm: alarm.opened, reverse=True)
    return sorted(newest, key=lambda alarm: ORDER.index(alarm.state))


def brief(alarms: Sequence[Alarm]) -> Iterator[RenderableType]:
    yield safe_text(format_count(len(alarms), "open alarm"), style="bold")
    for alarm in alarms:
        change = alarm.change
        size = f"{MARKS[change.direction]} {describe_alarm(alarm)}"
        yield safe_text(f" {alarm.id} {alarm.state:<9} {size} in {alarm.key.target} since {change.first}", style(alarm))
        case = case_of(alarm.key.case)
        yield Padding(safe_text(f"{case.workload} {case.params_text}".rstrip()), INDENT)
        if remark := note(alarm):
            yield Padding(safe_text(clip(remark, LONGEST), style="dim"), INDENT)


def render_alarms(alarms: Sequence[Alarm], *, whole: bool) -> Iterator[Text]:
    listed = [alarm for alarm in sort_alarms(alarms) if whole or is_open_alarm(alarm)]
    if not listed:
        yield safe_text("no alarm is open" + ("; --all shows those that were" if alarms else ""))
    for index, alarm in enumerate(listed):
        if index:
            yield Text()
        key, change = alarm.key, alarm.change
        step = describe_step(key, change, alarm.said)
        yield safe_text(f"{alarm.id} {alarm.state} {step}", style=style(alarm) or "bold")
        yield safe_text(f"  {key.case} in {key.target} against {key.reference}")
        evidence = describe_evidence(alarm)
        yield safe_text(f"  host {key.host} · {key.engine} · {key.device} · run {alarm.run} · {evidence}")
        if remark := note(alarm):
            yield safe_text(f"  note: {clip(remark, LONGEST)}")
        changed = "; ".join(alarm.surroundings) or "nothing that is known"
        yield safe_text(f"  changed since {change.last}: {changed}")
        for line in describe_cause(alarm):
            yield safe_text(f"  {line}")
        for name, command in (("reproduce", alarm.reproduce), ("bisect", alarm.bisect), ("why", alarm.why)):
            if command:
                yield safe_text(f"  {name}: {command}")


def describe_step(key: Key, change: Change, said: str = "") -> str:
    size = f"{MARKS[change.direction]} {change.first}: {describe_size(key, change, said)}"
    return size if key.metric == RESULTS else f"{size}, {ratio(change.before)} before, {ratio(change.after)} after"


def format_alarm_state(alarm: Alarm) -> str:
    remark = note(alarm)
    return f"alarm {alarm.id} is {alarm.state}{f': {clip(remark, LONGEST)}' if remark else ''}"


def note(alarm: Alarm) -> str:
    return ": ".join(part for part in (f"until {alarm.until}" if alarm.until else "", alarm.note) if part)


def style(alarm: Alarm) -> StyleType:
    return STYLES[alarm.change.direction] if alarm.state in ("new", "confirmed") else "dim"


def format_between(low: float, high: float) -> str:
    return "-".join(ratio(bound).removesuffix("x") for bound in (low, high))
