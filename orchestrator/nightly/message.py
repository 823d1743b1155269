"""Composes the message about a nightly run, most serious facts first. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Literal

from orchestrator.history.model import Alarm, Night, NightReport
from orchestrator.history.wording import (
    describe_alarm,
    describe_apart,
    describe_cause,
    describe_direction,
    describe_evidence,
    describe_levels,
)
from orchestrator.metrics import TIMES
from orchestrator.metrics.followed import TIME
from orchestrator.nightly.message_formats import (
    Code,
    Command,
    MessageSection,
    Words,
    as_html,
    as_markdown,
    section_as_text,
)

Gravity = Literal["info", "success", "warning", "failure"]

MOST = 10
# Alarms that were reported on an earlier night need only a reminder.
MOST_STILL = 3
# If fewer series changed, "more than half" means nothing.
FEWEST_TO_SUSPECT = 2


@dataclass(frozen=True, kw_only=True)
class Message:
    title: str
    text: str
    html: str
    markdown: str
    gravity: Gravity


def compose(report: NightReport, host: str | None = None, most: int = MOST) -> Message:
    """Compose the message about a nightly run.

    `host` is the name that people use for the machine. Every list shows at most `most` entries.
    """
    shown_host = _sanitize_host(host or report.night.host)
    return _message(
        title=f"tfcompare: {summarize_night(report)} (host {shown_host}, {report.night.night})",
        sections=list(_sections(report, most)),
        gravity=_gravity(report),
    )


def trial(host: str) -> Message:
    """Return a message that shows that a target can be reached."""
    return _message(
        title=f"tfcompare: a test (host {_sanitize_host(host)})",
        sections=[
            MessageSection(
                ("Notifications arrive here.",),
                (("Only nights in which something changed or went wrong are reported here.",),),
            )
        ],
        gravity="info",
    )


def summarize_night(report: NightReport) -> str:
    """Summarize a nightly run in a few words, most serious facts first."""
    ways = Counter(describe_direction(alarm.key, alarm.change) for alarm in _worst_first(_list_causes(report.opened)))
    ended = {"failed": ["the nightly run failed"], "hung": ["the nightly run hung"], "skipped": ["skipped"]}
    counts = (
        *((count, way) for way, count in ways.items()),
        (len(report.confirmed), "confirmed"),
        (len(report.resized), "of another size"),
        (len(report.recovered), "recovered"),
        (len(report.vanished), "vanished"),
        (len(report.appeared), "appeared"),
        (len(report.warnings), "warning" if len(report.warnings) == 1 else "warnings"),
    )
    saved = ["saved models broke"] * bool(report.broken) + ["saved models are ok again"] * bool(report.mended)
    parts = ended.get(report.night.outcome, []) + saved + [f"{count} {what}" for count, what in counts if count]
    return ", ".join(parts) or "nothing changed"


def _gravity(report: NightReport) -> Gravity:
    if report.night.outcome in ("failed", "hung"):
        return "failure"
    if (
        report.vanished
        or report.broken
        or report.warnings
        or any(alarm.change.direction == "slower" for alarm in (*report.opened, *report.confirmed))
    ):
        return "warning"
    return "success" if report.opened or report.recovered or report.resized or report.mended else "info"


def _sections(report: NightReport, most: int) -> Iterator[MessageSection]:
    yield from _bad_ending(report.night, most)
    yield from _suspicion(report)
    yield from _alarms_opened(report.opened, report.history, most)
    broken: list[Words] = [(Code(text),) for text in report.broken]
    yield from _build_list_section("Saved models that were ok before", broken, most)
    yield from _build_list_section("Confirmed by a second night", list(map(_still, report.confirmed)), most)
    yield from _build_list_section("Changed in size", list(map(_still, report.resized)), most)
    recovered: list[Words] = [
        (*_where(alarm), f": it was {describe_alarm(alarm)} since {alarm.change.first}") for alarm in report.recovered
    ]
    yield from _build_list_section("Recovered", recovered, most)
    mended: list[Words] = [(Code(text),) for text in report.mended]
    yield from _build_list_section("Saved models that are ok again", mended, most)
    yield from _build_list_section("Vanished from the suite", [(Code(name),) for name in report.vanished], most)
    yield from _build_list_section("New in the suite", [(Code(name),) for name in report.appeared], most)
    yield from _build_list_section("May you move?", [(Code(text),) for text in report.moves], most)
    yield from _build_list_section("Warnings", [(Code(text),) for text in report.warnings], most)
    told = (*report.confirmed, *report.resized)
    still = [_still(alarm) for alarm in _worst_first(report.still) if alarm not in told]
    yield from _build_list_section("Still open from earlier nights", still, min(most, MOST_STILL))
    yield _night(report, most)


def _bad_ending(night: Night, most: int) -> Iterator[MessageSection]:
    if night.outcome not in ("failed", "hung"):
        return
    head = {
        "failed": "The nightly run failed and has no result.",
        "hung": "The nightly run hung and was ended; what it had measured until then is kept."
        if night.cells
        else "The nightly run hung and was ended before anything was measured.",
    }[night.outcome]
    lines: list[Words | Command] = [(Code(text),) for text in night.said[: most or 1]]
    yield MessageSection((head,), (*lines, Command("what this machine can run", "tfcompare doctor")))


def _suspicion(report: NightReport) -> Iterator[MessageSection]:
    """Warn if most series change on the same night and in the same direction, which is seldom due to TensorFlow."""
    for way in ("slower", "faster"):
        moved = {alarm.key for alarm in report.opened if alarm.change.direction == way}
        # A series that recovers changes in the opposite direction of its alarm.
        moved |= {alarm.key for alarm in report.recovered if alarm.change.direction != way}
        moved = {key for key in moved if key.metric == TIME}
        if len(moved) >= FEWEST_TO_SUSPECT and len(moved) * 2 > report.night.cells:
            yield MessageSection(
                (f"Watch the tool: {len(moved)} of {report.night.cells} became {way} the same night.",),
                (
                    ("Suspect the reference, the machine or tfcompare itself before any version.",),
                    Command("what this machine is like right now", "tfcompare doctor"),
                ),
            )


def _alarms_opened(alarms: Sequence[Alarm], history: str, most: int) -> Iterator[MessageSection]:
    causes = _list_causes(alarms)
    for alarm in _worst_first(causes)[:most]:
        yield _alarm(alarm, [other for other in alarms if other not in causes and _follows(other, alarm)], history)
    if len(causes) > most:
        count = f"and {len(causes) - most} more" if most else f"{len(causes)} changes"
        yield MessageSection((f"{count}: ", Code(f"tfcompare history{history}")))


def _list_causes(alarms: Sequence[Alarm]) -> list[Alarm]:
    """Return the alarms, without those about e.g. first calls that an alarm about the calls themselves explains.

    Those have a line in the text of the other alarm, since what makes calls slower also makes the first one slower.
    """
    return [alarm for alarm in alarms if not any(_follows(alarm, other) for other in alarms)]


def _follows(alarm: Alarm, calls: Alarm) -> bool:
    return (
        calls.key.metric == TIME != alarm.key.metric in TIMES
        and replace(alarm.key, metric=TIME, judge=calls.key.judge) == calls.key
        and alarm.change.direction == calls.change.direction
        # An alarm that sets an exit code is not hidden behind a provisional one.
        and (alarm.is_provisional or not calls.is_provisional)
    )


def _worst_first(alarms: Iterable[Alarm]) -> list[Alarm]:
    return sorted(alarms, key=lambda alarm: (alarm.change.direction == "faster", -abs(log(alarm.change.ratio))))


def _alarm(alarm: Alarm, followers: Sequence[Alarm], history: str) -> MessageSection:
    change, key = alarm.change, alarm.key
    lines: list[Words | Command] = [
        (f"since {change.first}, the last unchanged nightly run was {change.last}; {describe_evidence(alarm)}",),
        ("against ", Code(str(key.reference)), f" {describe_levels(alarm)} ({key.device}, {key.engine})"),
    ]
    if alarm.surroundings:
        lines += [("changed with it: ", Code(text)) for text in alarm.surroundings]
    else:
        lines.append(("nothing else that is recorded changed with it",))
    lines += [(Code(text),) for text in describe_cause(alarm)]
    lines += [(f"also: {describe_alarm(other)}, alarm {other.id}",) for other in followers]
    commands = (
        ("reproduce", alarm.reproduce),
        ("see the search" if alarm.searched else "see what came between", alarm.bisect),
        ("find out why", alarm.why),
    )
    lines += [Command(label, text) for label, text in commands if text]
    lines.append(Command("if it is meant to be", f"tfcompare history mute {alarm.id} --note WHY{history}"))
    return MessageSection((f"{describe_alarm(alarm)}: ", *_where(alarm)), tuple(lines))


def _where(alarm: Alarm) -> Words:
    return Code(alarm.key.case), " in ", Code(str(alarm.key.target))


def _still(alarm: Alarm) -> Words:
    note: Words = (", known: ", Code(alarm.note)) if alarm.note else ()
    apart: Words = ("; ", Code(describe_apart(alarm))) if alarm.apart else ()
    return (f"{describe_alarm(alarm)}: ", *_where(alarm), f" since {alarm.change.first}", *note, *apart)


def _build_list_section(what: str, lines: Sequence[Words], most: int) -> Iterator[MessageSection]:
    if not lines:
        return
    listed: list[Words | Command] = list(lines[:most])
    if most and len(lines) > most:
        listed.append((f"and {len(lines) - most} more",))
    yield MessageSection((f"{what}: {len(lines)}",), tuple(listed))


def _night(report: NightReport, most: int) -> MessageSection:
    night = report.night
    lines: list[Words | Command] = []
    if night.outcome == "skipped":
        lines.append(("it was skipped: there was a nightly run for this date already",))
    elif night.cells:
        lines.append((f"{night.cells} measured, {night.confirmed} of them again",))
    if night.outcome in ("measured", "skipped"):
        lines += [(Code(text),) for text in night.said[:most]]
    if night.models:
        lines.append((Code(night.models),))
    if report.models_page:
        lines.append(Command("their table", report.models_page))
    if report.page:
        lines.append(Command("report", report.page))
    lines.append(Command("all nights", f"tfcompare history{report.history}"))
    versions = Code(", ".join(night.targets))
    return MessageSection((f"Night of {night.night}, suite ", Code(night.suite), ", versions ", versions), tuple(lines))


def _message(*, title: str, sections: Sequence[MessageSection], gravity: Gravity) -> Message:
    return Message(
        title=title,
        text="\n\n".join(map(section_as_text, sections)),
        html="\n".join(map(as_html, sections)),
        markdown="\n\n".join(map(as_markdown, sections)),
        gravity=gravity,
    )


def _sanitize_host(name: str) -> str:
    """Return the host name without characters that could do harm.

    Services put the title into mail headers and next to markup.
    """
    return re.sub(r"[^A-Za-z0-9.:@-]", "-", name)[:60]
