"""The status of this machine's nightly runs: what is planned, the last result, and what runs now."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from orchestrator import redact
from orchestrator.history.model import Event, Night
from orchestrator.nightly.due import ON_TIME, find_night, next_after, time_of_day
from orchestrator.nightly.lock import Holder
from orchestrator.nightly.schedule.units import PlannedSchedule
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.durations import format_hours_minutes
from orchestrator.terminal.strict_json import pick


@dataclass(frozen=True, kw_only=True)
class ScheduleStatus:
    planned: PlannedSchedule
    # This scheduler starts the nightly runs.
    by: str
    next: datetime
    last: Night | None
    running: Holder | None
    wrong: tuple[str, ...]

    def as_object(self) -> dict[str, object]:
        return {
            **pick(self, "by at=planned.at missed=planned.missed history=planned.history next wrong"),
            "flags": list(redact.redact_words(self.planned.flags)),
            "running": pick(self.running, "pid since") if self.running else None,
            "last": pick(self.last, "night outcome exit_code ended=at run") if self.last else None,
        }


def find_status(
    planned: PlannedSchedule,
    by: str,
    events: Sequence[Event],
    running: Holder | None,
    now: datetime,
    wrong: tuple[str, ...] = (),
) -> ScheduleStatus:
    nights = [event for event in events if isinstance(event, Night) and _belongs_to(planned, event) and event.at <= now]
    last = max(nights, key=lambda night: night.at, default=None)
    at = time_of_day(planned.at)
    there = now.astimezone(planned.tz)
    return ScheduleStatus(
        planned=planned,
        by=by,
        next=next_after(there, at, planned.tz),
        last=last,
        running=running,
        wrong=(*wrong, *_find_problems(planned, last, find_night(there, at), running, now)),
    )


def _belongs_to(planned: PlannedSchedule, night: Night) -> bool:
    """Return whether a nightly run was started on the machine of the schedule, for its device.

    A host of a fleet may have measured it.
    """
    return (night.starter or night.host) == planned.host and night.device in ("", planned.device)


def _find_problems(
    planned: PlannedSchedule, last: Night | None, due: date, running: Holder | None, now: datetime
) -> list[str]:
    if last and last.outcome in ("failed", "hung"):
        reason = f": {last.said[0]}" if last.said else ""
        return [
            f"the nightly run of {last.night} {'failed' if last.outcome == 'failed' else 'hung and was ended'}{reason}"
        ]
    at = time_of_day(planned.at)
    began = datetime.combine(due, at, planned.tz).astimezone()
    if running or now < began + ON_TIME or began < planned.since:
        return []
    if last is None or max(last.night, last.started.astimezone().date()) < due:
        return [f"the nightly run of {due} left no result"]
    return []


def describe_status(status: ScheduleStatus, now: datetime) -> list[str]:
    planned = status.planned
    fate = "is started later" if planned.missed == "catch-up" else "is skipped"
    text_lines = [
        f"every night at {planned.at}, by {status.by}; a missed run {fate}",
        f"  tfcompare nightly run {shlex.join(redact.redact_words(planned.flags))}",
        f"next: {status.next:%Y-%m-%d %H:%M %Z} (in {format_hours_minutes(status.next - now)})",
    ]
    if (last := status.last) is None:
        text_lines.append(f"last: none yet in {planned.history}")
    else:
        alike = f", run {last.run}" if last.run else ""
        text_lines.append(
            f"last: {last.night} {last.outcome}, {format_count(last.cells, 'comparison')}, exit code {last.exit_code}, "
            f"after {format_hours_minutes(last.at - last.started)}{alike}"
        )
    if running := status.running:
        text_lines.append(
            f"now: a nightly run has been in progress since {running.since:%Y-%m-%d %H:%M} (pid {running.pid})"
        )
    else:
        text_lines.append("now: no nightly run is in progress")
    return [*text_lines, *(f"problem: {problem}" for problem in status.wrong)]


def now() -> datetime:
    return datetime.now(UTC).astimezone()
