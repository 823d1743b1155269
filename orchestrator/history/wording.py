"""A change in words, for every place that shows one: `1.12x slower (1.11-1.13)`, or `results differ by 2%`."""

from orchestrator.history.model import Alarm, Change, Key
from orchestrator.metrics.followed import RESULTS, TIME, describe_change
from orchestrator.reports.columns import format_interval, ratio


def describe_direction(key: Key, change: Change) -> str:
    """Return which way a series went: `slower`, `more peak memory` or `with other results`."""
    if key.metric == RESULTS:
        return "with other results"
    word = describe_change(key.metric, change.direction)
    if key.metric == TIME:
        return word if key.judge == "wall" else f"{word} by CPU time"
    return f"{word} {key.about}"


def describe_size(key: Key, change: Change, said: str = "") -> str:
    if key.metric == RESULTS:
        return said or "other results"
    return f"{ratio(change.ratio)} {describe_direction(key, change)} ({format_interval(change)})"


def describe_alarm(alarm: Alarm) -> str:
    if alarm.left is None or alarm.state == "recovered":
        return describe_size(alarm.key, alarm.change, alarm.said)
    way = describe_direction(alarm.key, alarm.change)
    return f"{ratio(alarm.left)} {way} now, {ratio(alarm.change.ratio)} at first"


def describe_evidence(alarm: Alarm) -> str:
    if alarm.key.metric == RESULTS:
        return "seen in several replicates that night"
    evidence = "measured twice that night" if alarm.found_by == "night" else "shown by all nights since then together"
    return f"{evidence}; provisional until other nights confirm it" if alarm.is_provisional else evidence


def describe_apart(alarm: Alarm) -> str:
    """Return why nights no longer show whether an alarm holds; '' if they do."""
    if not alarm.apart or alarm.state == "recovered":
        return ""
    return f"its surroundings have changed since, so no night can end it: {'; '.join(alarm.apart)}"


def describe_cause(alarm: Alarm) -> tuple[str, ...]:
    """Return what is known of an alarm's cause: what it undoes, between which builds it lies, and why."""
    lines = [line for line in (alarm.undoes, describe_apart(alarm)) if line]
    if alarm.good and alarm.bad:
        lines.append(f"between {alarm.good} (as before) and {alarm.bad} (changed)")
    if alarm.commits:
        lines.append(f"commits between them: {alarm.commits}")
    return (*lines, *alarm.findings)


def describe_levels(alarm: Alarm) -> str:
    """Return how a version compared with the reference before and after a change."""
    change, about = alarm.change, alarm.key.about
    if alarm.key.metric == RESULTS:
        return f"its results {'were equal' if change.before == 1 else 'differed by less'} until {change.last}"
    subject = f"its {about} was" if about else "it took"
    return f"{subject} {ratio(change.before)} before and {ratio(change.after)} since"
